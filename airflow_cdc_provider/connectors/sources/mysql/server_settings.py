"""Variables of the server that decide what the binlog contains, and when a commit is visible. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_cdc_provider.core.errors import Problem

Required = Mapping[str, tuple[str, str, str]]
"""Variable -> error code, required value, the problem with any other value. A server without the variable has no such
problem."""

COMMIT_ORDER: Required = {
    "binlog_order_commits": ("SRC095", "ON", "a commit may be visible before an earlier one of the binlog"),
    "gtid_mode": (
        "SRC095",
        "ON",
        "without GTIDs, a reset of the binlog and commits that a copy does not see yet cannot be detected",
    ),
}
REQUIRED: Required = {
    "binlog_format": ("SRC091", "ROW", "the binlog contains statements instead of rows"),
    "binlog_row_image": (
        "SRC092",
        "FULL",
        "row images lack columns: an inserted row lacks those with default values, so these values are unknown",
    ),
    "binlog_row_metadata": (
        "SRC093",
        "FULL",
        "the binlog has no column names: a table must be copied again after it was altered",
    ),
    "binlog_row_value_options": ("SRC094", "", "the binlog contains JSON documents as partial updates"),
    "binlog_transaction_compression": ("SRC094", "OFF", "the binlog has compressed transactions, which are not read"),
    "mysql56_temporal_format": ("SRC094", "ON", "the binlog does not show the format of times"),
    **COMMIT_ORDER,
}
FIXES = {
    "gtid_mode": "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = OFF_PERMISSIVE; "
    "SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON;",
}


def setting_problems(variables: Mapping[str, str], required: Required, server: str) -> Iterator[Problem]:
    """``server``: as problems name it."""
    for name, (code, value, what) in required.items():
        if name in variables and variables[name].upper() != value:
            do = FIXES.get(name, f"SET GLOBAL {name} = '{value}';") + " and the same in the server's configuration"
            yield Problem(code, what, server, f"{name} = {variables[name]}", f"{name} = {value or 'empty'}", do)

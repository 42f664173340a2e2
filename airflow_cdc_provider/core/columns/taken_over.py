"""Settings of columns that the rows of a table that is taken over do not follow. Pure."""

from __future__ import annotations

from airflow_cdc_provider.core.columns.copied import copied_name
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema


def not_taken_over(table: str, where: str, found: str, allowed: str) -> Problem:
    return Problem(
        "CPY023",
        f"the existing table of {table} cannot be taken over",
        where=where,
        found=found,
        allowed=allowed,
        do="change the table, or set another `target`; without an existing table, the table starts without rows",
        data="the table was not touched",
    )


def other_values(rule: TableRule, copy: TableSchema, where: str) -> Problem | None:
    """None if the existing rows can have the values of the copy. Hidden values would stay in clear, and count as
    hidden; a row with another text of its key would get no change. ``copy``: the columns of the copy."""
    identifying = copy.key or copy.names
    found = [
        f"{field}: {name}"
        for field in ("hash", "mask", "truncate", "cast")
        for name in getattr(rule.columns, field)
        if copied_name(rule, name) in (identifying if field == "cast" else copy.names)
    ]
    if not found:
        return None
    allowed = "`columns` without `hash`, `mask` and `truncate`, and without `cast` of what identifies a row"
    return not_taken_over(copy.table, where, f"columns.{', columns.'.join(found)}", allowed)

"""The settings of every session with a MySQL or MariaDB server: binlog, copy, poll, comparison, check and target.

A server, its ``init_connect`` or an account can set each of them, so none may be inherited. A test compares this list
with the settings of a server: the others may be inherited, for a reason.
"""

from __future__ import annotations

from collections.abc import Mapping

WAIT_LIMIT_S = 600
"""How long a statement waits for a table that another session alters. PyMySQL reads for as long."""

IDLE_LIMIT_S = 86_400

TEXTS: Mapping[str, str] = {
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_bin",
    "time_zone": "'+00:00'",
    "lc_time_names": "'en_US'",
    "lc_messages": "'en_US'",
    "div_precision_increment": "4",
    "group_concat_max_len": "1048576",
}
"""Values, and errors that have no number of their own, as text. A server that ignores the character set of a client
would replace the characters that its own one lacks."""

STATEMENTS: Mapping[str, str] = {
    "sql_mode": "''",
    "sql_auto_is_null": "0",
    "sql_safe_updates": "0",
    "sql_quote_show_create": "1",
    "completion_type": "'NO_CHAIN'",
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "low_priority_updates": "0",
    "transaction_isolation /*!50720*/": "'REPEATABLE-READ'",
    "transaction_read_only /*!50720*/": "0",
    "tx_isolation /*M!*/": "'REPEATABLE-READ'",
    "tx_read_only /*M!*/": "0",
    "check_constraint_checks /*M!*/": "1",
    "old_mode /*M!*/": "'UTF8_IS_UTF8MB3'",
    "sql_if_exists /*M!*/": "0",
    "system_versioning_asof /*M!*/": "DEFAULT",
    "show_gipk_in_create_table_and_information_schema /*!80030*/": "1",
}
"""What a statement means, and what the catalog shows."""

ROWS: Mapping[str, str] = {
    "sql_select_limit": "18446744073709551615",
    "max_join_size": "18446744073709551615",
    "sql_big_selects": "1",
    "max_sort_length": "65535",
    "cte_max_recursion_depth /*!80003*/": "4294967295",
    "max_recursive_iterations /*M!*/": "4294967295",
}
"""Which rows a statement reads. ``max_sort_length``: the rest of a longer key would not count in the order of pages."""

LIMITS: Mapping[str, str] = {
    "wait_timeout": str(IDLE_LIMIT_S),
    "interactive_timeout": str(IDLE_LIMIT_S),
    "net_read_timeout": "600",
    "net_write_timeout": "3600",
    "lock_wait_timeout": str(WAIT_LIMIT_S),
    "innodb_lock_wait_timeout": "120",
    "max_execution_time /*!50708*/": "0",
    "max_statement_time /*M!*/": "0",
    "idle_transaction_timeout /*M!*/": "0",
    "idle_readonly_transaction_timeout /*M!*/": "0",
    "idle_write_transaction_timeout /*M!*/": "0",
    "max_session_mem_used /*M!*/": "9223372036854775807",
    "tmp_disk_table_size /*M!*/": "18446744073709551615",
}
"""How long a statement or a session may take, and how much."""

SETTINGS: Mapping[str, str] = {**LIMITS, **TEXTS, **STATEMENTS, **ROWS}
"""A comment behind a name says which servers have the setting: ``/*!50708*/`` MySQL 5.7.8 or later, ``/*M!*/``
MariaDB."""


def settings_statement(settings: Mapping[str, str] = SETTINGS) -> str:
    """One text for both servers and all clients: each server executes the comments that are for it."""
    always, conditional = [], []
    for key, value in settings.items():
        name, _, comment = key.partition(" ")
        if comment:
            conditional.append(f" {comment.removesuffix('*/')} , SESSION {name} = {value} */")
        else:
            always.append(f"SESSION {name} = {value}")
    return f"SET {', '.join(always)}{''.join(conditional)}"


def setting_name(key: str) -> str:
    return key.partition(" ")[0]

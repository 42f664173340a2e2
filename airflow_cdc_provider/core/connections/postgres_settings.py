"""The settings of every session with a PostgreSQL server: stream, copy, poll, comparison, check and target.

A role, a database or a server can set each of them, so none may be inherited. A setting that a version does not have is
left out. A test compares this list with the settings of each version: the others may be inherited, for a reason.
"""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "timezone_abbreviations": "Default",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "xmloption": "content",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "quote_all_identifiers": "off",
}
"""Values and definitions as text. ``extra_float_digits``: from 1 on, the shortest exact text."""

STATEMENTS: Mapping[str, str] = {
    "search_path": "",
    "array_nulls": "on",
    "backslash_quote": "safe_encoding",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "client_min_messages": "notice",
    "exit_on_error": "off",
}
"""What a statement means. With an empty ``search_path``, names are printed qualified, and no other
functions and operators are found than the server's. The server warns that the stream lacks changes, so warnings are
sent."""

ROWS: Mapping[str, str] = {
    "row_security": "off",
    "restrict_nonsystem_relation_kind": "",
    "gin_fuzzy_search_limit": "0",
    "ignore_checksum_failure": "off",
    "zero_damaged_pages": "off",
}
"""Which rows a statement reads. A policy that would hide rows is an error. Only a superuser can change the last two, so
elsewhere the server refuses a session that inherits another value."""

LIMITS: Mapping[str, str] = {
    "transaction_timeout": "0",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "tcp_user_timeout": "0",
    "wal_sender_timeout": "0",
    "vacuum_cost_delay": "0",
    "debug_logical_replication_streaming": "buffered",
}
"""How long a statement, a transaction or a session may take. Keepalives of TCP detect a dead client."""

SETTINGS: Mapping[str, str] = {**LIMITS, **TEXTS, **STATEMENTS, **ROWS}


def settings_statement(settings: Mapping[str, str] = SETTINGS, of_transaction: bool = False) -> str:
    """One text for all versions and clients. The limit of a statement comes first, because it also limits this one.
    ``of_transaction``: the settings end with the transaction, so that a pooler may give the session to others."""
    local, is_local = ("LOCAL ", "true") if of_transaction else ("", "false")
    rows = ", ".join(f"('{name}', '{value}')" for name, value in settings.items())
    return (
        f"SET {local}statement_timeout TO 0; "
        f"SELECT pg_catalog.set_config(name, value, {is_local}) FROM (VALUES {rows}) AS fixed (name, value) "
        "WHERE pg_catalog.current_setting(name, true) OPERATOR(pg_catalog.<>) value"
    )

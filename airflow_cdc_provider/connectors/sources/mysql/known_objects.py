"""What the catalog says of tables, triggers and stored functions, if the login sees all of them."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.alterations import LOGGING_ENGINES
from airflow_cdc_provider.connectors.sources.mysql.catalog import OTHER_KINDS, fetch_all, read_user, read_variables
from airflow_cdc_provider.connectors.sources.mysql.writes import KnownObjects
from airflow_cdc_provider.core.table.source_names import table_name

SHOW_TRIGGERS = frozenset({"TRIGGER"})
SHOW_FUNCTIONS = frozenset({"EXECUTE", "SHOW_ROUTINE"})
"""Privileges on everything, by which a login sees all triggers and all stored functions."""

GRANTED = "SELECT privilege_type FROM information_schema.user_privileges WHERE grantee = %s"
TABLES = """
SELECT table_schema, table_name FROM information_schema.tables WHERE table_type NOT IN %s AND lower(engine) IN %s
"""
TRIGGERED = "SELECT event_object_schema, event_object_table FROM information_schema.triggers"
FUNCTIONS = """
SELECT lower(routine_name) FROM information_schema.routines
WHERE routine_type <> 'PROCEDURE' AND routine_schema <> 'sys'
"""
"""Also packages. The functions of the server itself, in ``sys``, change no row."""


def read_objects(connection: Any) -> KnownObjects | None:
    """None if the login may not see all triggers and functions."""
    granted = {str(name) for (name,) in fetch_all(connection, GRANTED, (read_user(connection),))}
    revoked = read_variables(connection, "partial_revokes").get("partial_revokes") == "ON"
    if revoked or not (granted & SHOW_TRIGGERS and granted & SHOW_FUNCTIONS):
        return None
    tables = fetch_all(connection, TABLES, (tuple(OTHER_KINDS), tuple(LOGGING_ENGINES)))
    triggered = {table_name(*row) for row in fetch_all(connection, TRIGGERED)}
    functions = frozenset(name for (name,) in fetch_all(connection, FUNCTIONS))
    return KnownObjects(frozenset(table_name(*row) for row in tables) - triggered, functions)

"""The settings of a session with a polled database: those that a stream of the same system has."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry

from airflow_cdc_provider.connectors.sources.jdbc_poll.sqlite_times import WALL_TIME, wall_time
from airflow_cdc_provider.connectors.sources.jdbc_poll.sqlite_values import text_or_bytes
from airflow_cdc_provider.core.connections import (
    mysql_settings,
    oracle_settings,
    postgres_settings,
    sqlserver_settings,
)

DEFAULT_SCHEMA = "default_schema"
"""Key of ``Connection.info``: the schema that the login has by default, where the settings take it away."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "postgresql": (postgres_settings.settings_statement(),),
    "mysql": (mysql_settings.settings_statement(),),
    "mariadb": (mysql_settings.settings_statement(),),
    "mssql": sqlserver_settings.SETTINGS,
    "oracle": oracle_settings.SETTINGS,
}
"""By SQLAlchemy's dialect names."""

DEFAULT_SCHEMAS: Mapping[str, str] = {"postgresql": "SELECT pg_catalog.current_schema()"}


def fix_settings(engine: sa.Engine) -> None:
    """In each session before its first statement, because SQLAlchemy asks a server once how it quotes, and again after
    SQLAlchemy's own settings."""
    system = engine.dialect.name

    def begin(opened: Any, record: ConnectionPoolEntry) -> None:
        if query := DEFAULT_SCHEMAS.get(system):
            with closing(opened.cursor()) as cursor:
                cursor.execute(query)
                record.info[DEFAULT_SCHEMA] = cursor.fetchone()[0]
        fix(opened, record)

    def fix(opened: Any, _: ConnectionPoolEntry) -> None:
        if system == "sqlite":
            opened.create_function(WALL_TIME, 2, wall_time, deterministic=True)
            opened.text_factory = text_or_bytes
        with closing(opened.cursor()) as cursor:
            for statement in SETTINGS.get(system, ()):
                cursor.execute(statement)
        opened.commit()

    sa.event.listen(engine, "connect", begin, insert=True)
    sa.event.listen(engine, "connect", fix)


def default_schema(connection: sa.Connection) -> str:
    """Of the login, also where the settings of the session take it away; empty if the system has no schemas."""
    return connection.info.get(DEFAULT_SCHEMA) or sa.inspect(connection).default_schema_name or ""

"""What a polled database has beside tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import name_of
from airflow_cdc_provider.connectors.sources.jdbc_poll.settings import default_schema
from airflow_cdc_provider.connectors.sources.mysql.catalog import OTHER_KINDS
from airflow_cdc_provider.core.spec.other_kinds import OtherKind

MYSQL = sa.text("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = :schema")


def read_other_kinds(connection: sa.Connection, schemas: Sequence[str]) -> dict[str, OtherKind]:
    """By ``schema.name``, or name where the system has no schemas."""
    namespaces = list(schemas) or [default_schema(connection)]
    return {
        name_of(namespace, name): OtherKind(what)
        for namespace in namespaces
        for name, what in _of_schema(connection, namespace)
    }


def _of_schema(connection: sa.Connection, namespace: str) -> Iterator[tuple[str, str]]:
    if connection.dialect.name in ("mysql", "mariadb"):
        for name, kind in connection.execute(MYSQL, {"schema": namespace}):
            if kind in OTHER_KINDS:
                yield name, OTHER_KINDS[kind]
        return
    inspector = sa.inspect(connection)
    with suppress(NotImplementedError):
        yield from ((name, "a view") for name in inspector.get_view_names(namespace or None))
    with suppress(NotImplementedError):
        yield from ((name, "a materialized view") for name in inspector.get_materialized_view_names(namespace or None))

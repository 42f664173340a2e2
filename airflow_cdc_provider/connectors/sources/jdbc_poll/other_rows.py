"""Which tables a server reads together with the rows of other tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.mysql.alterations import LOGGING_ENGINES

PARTITIONED = """
SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(namespace)s AND (c.relkind = 'p' OR EXISTS (
    SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class chunk ON chunk.oid = i.inhrelid
    JOIN pg_catalog.pg_namespace o ON o.oid = chunk.relnamespace
    WHERE i.inhparent = c.oid AND o.nspname = '_timescaledb_internal'))
"""
"""Also hypertables of TimescaleDB, whose rows are in children that are no tables to anybody."""

ENGINES = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %(namespace)s"


@dataclass(frozen=True)
class OtherRows:
    """Of the tables of a schema. ``has_children``: any table may have inheritance children, whose rows ONLY leaves out.
    ``partitioned``: tables whose rows are all in other ones. ``engines``: table -> storage engine, of tables whose
    engine stores no rows of its own: MERGE, FEDERATED, CONNECT."""

    has_children: bool = False
    partitioned: frozenset[str] = frozenset()
    engines: Mapping[str, str] = field(default_factory=dict)

    def is_read_alone(self, name: str) -> bool:
        return self.has_children and name not in self.partitioned


def read_other_rows(connection: sa.Connection, namespace: str) -> OtherRows:
    names = {"namespace": namespace}
    match connection.dialect.name:
        case "postgresql":
            partitioned = frozenset(name for (name,) in connection.exec_driver_sql(PARTITIONED, names))
            return OtherRows(has_children=True, partitioned=partitioned)
        case "mysql" | "mariadb":
            found = connection.exec_driver_sql(ENGINES, names)
            return OtherRows(engines={name: kind for name, kind in found if kind and _is_foreign(kind)})
        case _:
            return OtherRows()


def _is_foreign(engine: str) -> bool:
    return engine.lower() not in LOGGING_ENGINES

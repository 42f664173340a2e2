"""The settings of the publication that decide which changes of a table the server sends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.table_facts import read_publication
from airflow_cdc_provider.core.table.identity import StreamSettings

if TYPE_CHECKING:
    from psycopg import Connection

PARTITIONED = "SELECT oid::int8 FROM pg_class WHERE relkind = 'p' AND oid::int8 = ANY (%s)"


def stream_settings(
    connection: Connection[Any], publication: str, tables: Iterable[CatalogTable]
) -> dict[str, StreamSettings]:
    """Of the publication, for each table. A partitioned table depends on one more setting than others."""
    facts, tables = read_publication(connection, publication), list(tables)
    if facts is None:
        return {}
    partitioned = {oid for (oid,) in connection.execute(PARTITIONED, ([table.oid for table in tables],))}
    via_root = "by the table" if facts.via_root else "by the partitions"
    return {
        table.schema.table: StreamSettings(
            f"{facts.operations}; {via_root}" if table.oid in partitioned else facts.operations,
            f"{facts.owner} {facts.generated} {'' if table.oid in partitioned else via_root}",
            facts.altered,
        )
        for table in tables
    }

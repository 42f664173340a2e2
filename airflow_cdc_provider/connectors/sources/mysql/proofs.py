"""Checksums of rows of a table, which the server computes in a transaction that shows the table at one position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, fetch_all
from airflow_cdc_provider.connectors.sources.mysql.compare import Statement, Statements
from airflow_cdc_provider.connectors.sources.mysql.copy import read_rows
from airflow_cdc_provider.core.proof.key_intervals import IntervalSums, Key, KeyInterval

if TYPE_CHECKING:
    import pyarrow as pa

NO_FUNCTION = frozenset({1046, 1305})
"""The server takes an unknown function for one of the current database, and may have none."""

ENGINE = "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


def is_transactional(connection: Any, table: CatalogTable) -> bool:
    """Whether a transaction shows the table at its beginning."""
    return fetch_all(connection, ENGINE, (table.database, table.name)) == [("InnoDB",)]


def can_hash(connection: Any) -> bool:
    """Since 9.6, the function is in a component of MySQL, which may not be installed."""
    import pymysql

    try:
        fetch_all(connection, "SELECT MD5('')")
    except pymysql.MySQLError as error:
        if error.args[0] not in NO_FUNCTION:
            raise
        return False
    return True


@dataclass(frozen=True)
class SnapshotProofs:
    """``connection``: in the transaction."""

    connection: Any
    statements: Statements

    def cuts(self, interval: KeyInterval, rows: int) -> Sequence[Key]:
        return self._fetch(self.statements.cuts(interval, rows))

    def sums(self, intervals: Sequence[KeyInterval]) -> Mapping[int, IntervalSums]:
        rows = self._fetch(self.statements.sums(intervals))
        return {int(number): IntervalSums(int(count), tuple(map(int, sums))) for number, count, *sums in rows}

    def hashes(self, intervals: Sequence[KeyInterval]) -> pa.Table:
        import pyarrow as pa

        rows = self._fetch(self.statements.hashes(intervals))
        columns = [pa.array([row[number] for row in rows], pa.string()) for number in (0, 1)]
        return pa.table(columns, names=["k", "h"])

    def rows(self, intervals: Sequence[KeyInterval], keys: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        table, schema = self.statements.table, self.statements.schema
        statement = self.statements.rows(intervals, keys)
        found = read_rows(self.connection, table, schema, statement.text, statement.parameters)
        return pa.concat_tables([arrow_schema(schema).empty_table(), *found])

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(statement.text, statement.parameters)
        return list(cursor.fetchall())

"""Columns that disappear from the messages of a table and return: dropped, and added again with the same name. Pure.

Rows that were not changed in between have NULL or a default at the source. The copy still has the values of the dropped
column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import HoleFound
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import same_columns

Span = tuple[str, str]


class ReturningColumns:
    """Takes the items that one task reads; each schema comes before its first record."""

    def __init__(self) -> None:
        self._schemas: dict[str, TableSchema] = {}
        self._spans: defaultdict[str, dict[str, Span]] = defaultdict(dict)

    def add(self, item: object) -> None:
        if isinstance(item, TableSchema):
            self._schemas[item.schema_id] = item
        elif isinstance(item, Block):
            keys = item.columns.column("order_key")
            self._extend(item.table, str(item.columns.column("schema_id")[0]), str(keys[0]), str(keys[-1]))
        elif isinstance(item, ChangeRecord) and item.schema_id and item.op not in CONTROL_OPERATIONS:
            self._extend(item.table, item.schema_id, item.order_key, item.order_key)

    def holes(self) -> Iterator[HoleFound]:
        """If records of one schema come before and after those of another one, the columns that only the first one has
        were dropped and added again."""
        for table, spans in self._spans.items():
            ordered = sorted(spans.items(), key=lambda item: item[1])
            for (before, (_, last)), (after, (first, _)) in combinations(ordered, 2):
                if last > first and (names := self._dropped(before, after)):
                    detail = f"column {', '.join(names)} was dropped, and another one was added under its name"
                    yield HoleFound(table, UNLOGGED, last, detail)

    def _dropped(self, before: str, after: str) -> list[str]:
        if before not in self._schemas:
            return []
        columns = self._schemas[before].columns
        remaining = same_columns(columns, self._schemas[after].columns if after in self._schemas else ())
        return [column.name for column in columns if column.name not in remaining]

    def _extend(self, table: str, schema_id: str, first: str, last: str) -> None:
        start, end = self._spans[table].get(schema_id, (first, last))
        self._spans[table][schema_id] = (min(first, start), max(last, end))

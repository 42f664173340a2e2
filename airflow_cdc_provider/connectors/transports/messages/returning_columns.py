"""Columns that leave the messages of a table and come back: dropped, and added again under the same name. Pure.

Rows that nobody changed in between hold NULL, or a default, at the source. The copy still has what the first column of
the name held.
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

Span = tuple[str, str]


class ReturningColumns:
    """Sees what one task reads; each schema comes before its first record."""

    def __init__(self) -> None:
        self._schemas: dict[str, TableSchema] = {}
        self._spans: defaultdict[str, dict[str, Span]] = defaultdict(dict)

    def show(self, item: object) -> None:
        if isinstance(item, TableSchema):
            self._schemas[item.schema_id] = item
        elif isinstance(item, Block):
            keys = item.columns.column("order_key")
            self._extend(item.table, str(item.columns.column("schema_id")[0]), str(keys[0]), str(keys[-1]))
        elif isinstance(item, ChangeRecord) and item.schema_id and item.op not in CONTROL_OPERATIONS:
            self._extend(item.table, item.schema_id, item.order_key, item.order_key)

    def found(self) -> Iterator[HoleFound]:
        for table, spans in self._spans.items():
            ordered = sorted(spans.items(), key=lambda one: one[1])
            for (before, (_, last)), (after, (first, _)) in combinations(ordered, 2):
                if last > first and (names := self._lost(before, after)):
                    what = f"column {', '.join(names)} was dropped, and another one was added under its name"
                    yield HoleFound(table, UNLOGGED, last, what)

    def _lost(self, before: str, after: str) -> list[str]:
        left = self._schemas[after].names if after in self._schemas else ()
        return [name for name in self._schemas[before].names if name not in left] if before in self._schemas else []

    def _extend(self, table: str, schema_id: str, first: str, last: str) -> None:
        known = self._spans[table].get(schema_id, (first, last))
        self._spans[table][schema_id] = (min(first, known[0]), max(last, known[1]))

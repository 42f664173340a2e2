"""Change records of random histories, as a connector makes them, some of them twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, canonical
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.model.histories import COLUMNS, KEY, Delivery
from tests.model.source import Change, Row

INT, TEXT, FLOAT = (LogicalType(kind) for kind in (Kind.INT32, Kind.TEXT, Kind.FLOAT64))
SHAPE = tuple(Column(name, kind) for name, kind in zip(COLUMNS, (INT, INT, TEXT, TEXT, FLOAT), strict=True))
KEYED = TableSchema("public.t", SHAPE, COLUMNS[:KEY])
KEYLESS = TableSchema("public.t", SHAPE)

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of every commit: it does not determine the order."""


class ChangeRecordWriter:
    """``order``: the last order key used. All records of a transaction have the same position."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.order = 0
        self.transactions = 0

    def records(self, one: Delivery) -> tuple[list[ChangeRecord], list[ChangeRecord]]:
        """The records of a transaction, and its duplicates at the end of the window."""
        self.transactions += 1
        now: list[ChangeRecord] = []
        later: list[ChangeRecord] = []
        for at, change in enumerate(one.changes):
            records = list(self._records(change))
            now += records * (2 if at in one.twice else 1)
            later += records if at in one.later else []
        return now, later

    def _records(self, change: Change) -> Iterator[ChangeRecord]:
        match change.op:
            case "truncate":
                yield self._record("truncate")
            case "move":
                link = f"{self.transactions}-{self.order}"
                yield self._departure(change.old, phase=DEPARTS, link_id=link)
                yield self._arrival("insert", change, phase=ARRIVES, link_id=link)
            case "delete":
                yield self._departure(change.old)
            case op:
                yield self._arrival(op, change)

    def _arrival(self, op: str, change: Change, **more: object) -> ChangeRecord:
        new, old = change.new, change.old
        assert new is not None
        known = range(len(new)) if change.known is None else sorted({*range(KEY), *change.known})
        if not self.schema.key and old is not None:
            more |= {"before": self._image(old, range(len(old))), "before_complete": True}
        image = self._image(new, known)
        whole = len(known) == len(new)
        return self._record(op, key=self._key(new), after=image, after_complete=whole, **more)

    def _departure(self, row: Row | None, **more: object) -> ChangeRecord:
        assert row is not None
        if self.schema.key:
            return self._record("delete", key_before=self._key(row), before=self._image(row, range(KEY)), **more)
        return self._record("delete", before=self._image(row, range(len(row))), before_complete=True, **more)

    def _record(self, op: str, **fields: object) -> ChangeRecord:
        self.order += 1
        order_key = f"{self.order:08x}"
        position = json.dumps({"transaction": self.transactions})
        return ChangeRecord(
            self.schema.table,
            op,
            order_key,
            self.schema.schema_id,
            event_id=order_key,
            position=position,
            commit_ts=MOMENT,
            tx_id=str(self.transactions),
            **fields,  # type: ignore[arg-type]
        )

    def _key(self, row: Row) -> str | None:
        return canonical(list(row[:KEY])) if self.schema.key else None

    def _image(self, row: Row, known: Iterable[int]) -> str:
        return canonical({COLUMNS[at]: json_value(SHAPE[at], row[at]) for at in known})


def json_value(column: Column, value: object) -> object:
    """The value in JSON: floats that are not numbers stay text."""
    return float(value) if column.type == FLOAT and isinstance(value, str) and value != "NaN" else value

"""A database: its schemas over time, its rows, and the transactions on them.

A read-write transaction takes no locks. Its next read and its commit are aborted if anything that it has read has
changed since, ranges without rows included: what it read is what it would read at its commit.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.sandbox.spanner import ddl
from airflow_cdc_provider.sandbox.spanner.clock import Clock, as_text
from airflow_cdc_provider.sandbox.spanner.errors import aborted, failed_precondition, invalid
from airflow_cdc_provider.sandbox.spanner.keysets import ranges_of
from airflow_cdc_provider.sandbox.spanner.mutations import Draft
from airflow_cdc_provider.sandbox.spanner.schema import Schema, SpannerTable
from airflow_cdc_provider.sandbox.spanner.storage import Key, Range, ReadKeys, Row, Rows


@dataclass
class ReadWrite:
    """``reads``: number of the table, what was read of it, and when. ``committed_at``: None before the commit."""

    reads: list[tuple[int, ReadKeys, int]] = field(default_factory=list)
    committed_at: int | None = None


class Database:
    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._clock = clock
        self._schemas: list[tuple[int, Schema]] = [(clock.next(), Schema())]
        self._rows: defaultdict[int, Rows] = defaultdict(Rows)

    def now(self) -> int:
        """A time at which all commits so far are visible and no later one is."""
        return self._clock.next()

    @property
    def schema(self) -> Schema:
        return self._schemas[-1][1]

    def schema_at(self, time: int) -> Schema:
        found = [schema for changed_at, schema in self._schemas if changed_at <= time]
        if not found:
            raise failed_precondition("The timestamp is before the database was created.")
        return found[-1]

    def change_schema(self, statements: Sequence[str]) -> None:
        """Statement by statement: those before one that is refused stay."""
        for statement in statements:
            with self.lock:
                changed = ddl.apply(self.schema, statement)
                self._schemas.append((self._clock.next(), changed))

    def read(
        self, table_name: str, columns: Sequence[str], key_set: Any, time: int, transaction: ReadWrite | None
    ) -> tuple[SpannerTable, Iterator[Row]]:
        """Rows in key order, each once. ``transaction``: remembers what it reads."""
        if not columns:
            raise invalid("A read must name at least one column.")
        table = self.schema_at(time).table(table_name)
        for name in columns:
            table.column(name)
        ranges = ranges_of(table, key_set)
        if transaction is not None:
            with self.lock:
                self._require_unchanged(transaction)
                transaction.reads.append((table.number, ReadKeys.of(ranges, len(table.key)), time))
        return table, (row for _, row in self._in_order(table, ranges, time))

    def splits(self, table_name: str, parts: int) -> list[Range]:
        """The whole table in ranges."""
        with self.lock:
            table = self.schema.table(table_name)
            keys = [key for key, _ in self._rows[table.number].scan(Range((), ()), self.now())]
            step = max(1, -(-len(keys) // parts))
            starts = keys[::step] or [()]
            starts[0] = ()
            ends = [*starts[1:], ()]
            return [Range(start, end, end_open=end != ()) for start, end in zip(starts, ends, strict=True)]

    def scan(self, table_name: str, part: Range, time: int) -> tuple[SpannerTable, Iterator[Row]]:
        table = self.schema_at(time).table(table_name)
        return table, (row for _, row in self._in_order(table, [part], time))

    def commit(self, mutations: Sequence[Any], transaction: ReadWrite) -> int:
        """The time of the commit. Raises Refused: ABORTED if what was read has changed. A commit that comes twice is
        done once."""
        with self.lock:
            if transaction.committed_at is not None:
                return transaction.committed_at
            self._require_unchanged(transaction)
            before = self._clock.last
            time = self._clock.next()
            draft = Draft(self.schema, self._rows, before, as_text(time))
            draft.apply(mutations)
            for (number, key), row in draft.changes.items():
                self._rows[number].put(key, row, time)
            transaction.committed_at = time
            return time

    def count(self, table: SpannerTable, time: int, column: str = "") -> int:
        """``column``: only rows that have a value of it."""
        rows = (row for _, row in self._rows[table.number].scan(Range((), ()), time))
        name = table.column(column).name if column else ""
        return sum(1 for row in rows if not name or row.get(name) is not None)

    def _in_order(self, table: SpannerTable, ranges: Sequence[Range], time: int) -> list[tuple[Key, Row]]:
        with self.lock:
            rows = self._rows[table.number]
            found = {}
            for part in ranges:
                if part.is_key(len(table.key)):
                    if (row := rows.get(part.start, time)) is not None:
                        found[part.start] = row
                else:
                    found.update(rows.scan(part, time))
            return sorted(found.items(), key=lambda item: item[0])

    def _require_unchanged(self, transaction: ReadWrite) -> None:
        for number, keys, time in transaction.reads:
            if keys.have_any(self._rows[number].changed_since(time)):
                raise aborted("Transaction was aborted: what it has read has changed.")

"""Row changes of one relation as change records: together where they are many and plain, else one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from airflow_cdc_provider.connectors.blocks import COMMON, Block, log_batch, log_columns
from airflow_cdc_provider.connectors.rows import Row, split_key_change
from airflow_cdc_provider.connectors.source import Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.dead_letters import undecoded_record
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.serde import to_plain

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from airflow_cdc_provider.connectors.sources.postgres.row_columns import VectorizedRows

FEW = 24
"""So many changes are read one by one: columns would take longer."""


class Transaction(NamedTuple):
    """What its changes have in common. ``prefix``: how their order keys start."""

    prefix: str
    tx_id: str
    commit_ts: datetime | None
    position: str


class ChangeRun:
    """Changes between two messages of their relation, in stream order. ``context`` is the first of the two. Those up to
    ``ended`` belong to transactions that have ended."""

    def __init__(self, layout: RowReader, context: bytes) -> None:
        self.layout = layout
        self.context = context
        self.ended = 0
        self.messages: list[bytes] = []
        self._lsns: list[int] = []
        self._ordinals: list[int] = []
        self._transactions: list[Transaction] = []
        self._in_transaction: list[int] = []

    def add(self, messages: Sequence[bytes], lsns: Sequence[int], ordinal: int, transaction: Transaction) -> None:
        """Consecutive changes of one transaction. ``lsns``: none below the one before; ``ordinal``: of the first."""
        self.messages += messages
        self._lsns += lsns
        self._ordinals += range(ordinal, ordinal + len(messages))
        if not self._transactions or self._transactions[-1] is not transaction:
            self._transactions.append(transaction)
        self._in_transaction += repeat(len(self._transactions) - 1, len(messages))

    def read(self, lo: int, hi: int) -> Iterator[StreamItem]:
        """What the changes ``lo`` to ``hi`` (not included) are. One that cannot be understood becomes an ``unreadable``
        record, one that the row filter leaves out an Ignored."""
        if hi - lo <= FEW or self.layout.task.rule.where:
            for n in range(lo, hi):
                yield from self._one(n)
        else:
            yield from self._many(lo, hi)

    def _many(self, lo: int, hi: int) -> Iterator[StreamItem]:
        from airflow_cdc_provider.connectors.sources.postgres.row_columns import vectorized_rows

        found = vectorized_rows(self.layout, self.messages[lo:hi])
        if found is None:
            for n in range(lo, hi):
                yield from self._one(n)
            return
        others = [lo + int(n) for n in (~found.plain).nonzero()[0]]
        block, taken = self._block(found, lo, hi), 0
        for start, other in zip([lo, *(n + 1 for n in others)], [*others, hi], strict=True):
            if other > start:
                yield Block(self.layout.table, block.slice(taken, other - start))
                taken += other - start
            if other < hi:
                yield from self._one(other)

    def _block(self, found: VectorizedRows, lo: int, hi: int) -> RecordBatch:
        """The columns of the change log, from those of the rows and what stands at their places."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import hex_digits

        rows, plain = found.rows, pa.array(found.plain)

        def of_transaction(name: str, kind: pa.DataType) -> pa.Array:
            return pa.array([getattr(one, name) for one in self._transactions], kind).take(places)

        places = pa.array(self._in_transaction[lo:hi]).filter(plain)
        ordinals = pa.array(self._ordinals[lo:hi], pa.int64()).filter(plain)
        lsns = pa.array(self._lsns[lo:hi], pa.int64()).filter(plain)
        change = [of_transaction("prefix", pa.string()), hex_digits(lsns, 16), hex_digits(ordinals, 8)]
        order_keys = pc.binary_join_element_wise(*change, "00", "")
        told = {
            **COMMON,
            "table": self.layout.table,
            "order_key": order_keys,
            "schema_id": self.layout.schema_id,
            "tx_id": of_transaction("tx_id", pa.string()),
            "tx_seq": ordinals,
            "commit_ts": of_transaction("commit_ts", log_columns().field("commit_ts").type),
            "position": of_transaction("position", pa.string()),
            "event_id": order_keys,
            **{name: rows.column(name) for name in rows.schema.names},
        }
        return log_batch(told, rows.num_rows)

    def _one(self, n: int) -> Iterator[StreamItem]:
        try:
            row = self.layout.read(messages.parse_row_change(self.messages[n]))
        except messages.MALFORMED as error:
            yield from self._put_aside(n, error)
            return
        if row is None:
            yield Ignored(1)
        elif row.key_changed:
            order = self._order(n)
            for phase, half in split_key_change(row):
                yield self._record(n, half, f"{order}{phase:02x}", phase, order)
        else:
            yield self._record(n, row, self._order(n) + "00", None, None)

    def _put_aside(self, n: int, error: Exception) -> Iterator[StreamItem]:
        """A row that moved leaves its old key all the same."""
        order, transaction = self._order(n), self._transactions[self._in_transaction[n]]
        gone, what = undecoded_record(self.layout, self.context, self.messages[n], error)
        if gone is not None:
            yield self._record(n, gone, f"{order}{DEPARTS:02x}", DEPARTS, order)
        order_key = f"{order}{ARRIVES if gone else 0:02x}"
        record = control(self.layout, Operation.UNREADABLE, order_key, self._ordinals[n], transaction)
        moved = {"phase": ARRIVES, "link_id": order} if gone else {}
        after = canonical(to_plain(what.record))
        yield replace(record, key=what.key, after=after, **moved)  # type: ignore[arg-type]

    def _order(self, n: int) -> str:
        """The order key up to the phase."""
        return f"{self._transactions[self._in_transaction[n]].prefix}{self._lsns[n]:016x}{self._ordinals[n]:08x}"

    def _record(self, n: int, row: Row, order_key: str, phase: int | None, link_id: str | None) -> ChangeRecord:
        """All fields by place: this may run once per row, and names would cost as much as the rest of it."""
        op, key_before, key, before, after, before_complete, after_complete, warnings, _ = row
        _, tx_id, commit_ts, position = self._transactions[self._in_transaction[n]]
        return ChangeRecord(
            self.layout.table,
            op,
            order_key,
            self.layout.schema_id,
            key_before,
            key,
            before,
            after,
            before_complete,
            after_complete,
            (),
            phase,
            link_id,
            None,
            tx_id,
            self._ordinals[n],
            commit_ts,
            position,
            order_key,
            "none",
            warnings,
        )


def control(layout: RowReader, op: str, order_key: str, ordinal: int, transaction: Transaction) -> ChangeRecord:
    """A record without a row that anybody could read."""
    return ChangeRecord(
        layout.table,
        op,
        order_key,
        layout.schema_id,
        tx_id=transaction.tx_id,
        tx_seq=ordinal,
        commit_ts=transaction.commit_ts,
        position=transaction.position,
        event_id=order_key,
    )

"""Converts runs of row changes of one relation to change records, in columns if there are many of them. Pure."""

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
"""Up to this number, changes are read one by one: columns would take longer."""


class Transaction(NamedTuple):
    """The values that all changes of a transaction share. ``prefix``: of their order keys."""

    prefix: str
    tx_id: str
    commit_ts: datetime | None
    position: str


class ChangeRun:
    """Changes between two relation messages, in stream order. ``context``: the first of the two messages. The first
    ``ended`` changes belong to transactions that have ended."""

    def __init__(self, reader: RowReader, context: bytes) -> None:
        self.reader = reader
        self.context = context
        self.ended = 0
        self.messages: list[bytes] = []
        self._lsns: list[int] = []
        self._ordinals: list[int] = []
        self._transactions: list[Transaction] = []
        self._in_transaction: list[int] = []

    def add(self, messages: Sequence[bytes], lsns: Sequence[int], ordinal: int, transaction: Transaction) -> None:
        """Add consecutive changes of one transaction. ``lsns`` ascend; ``ordinal``: of the first change."""
        self.messages += messages
        self._lsns += lsns
        self._ordinals += range(ordinal, ordinal + len(messages))
        if not self._transactions or self._transactions[-1] is not transaction:
            self._transactions.append(transaction)
        self._in_transaction += repeat(len(self._transactions) - 1, len(messages))

    def read(self, lo: int, hi: int) -> Iterator[StreamItem]:
        """The items of the changes ``lo`` to ``hi`` (exclusive). A change that cannot be decoded becomes an
        ``unreadable`` record; one that the row filter leaves out becomes an Ignored."""
        if hi - lo <= FEW or self.reader.task.rule.where:
            for n in range(lo, hi):
                yield from self._read_change(n)
        else:
            yield from self._read_blocks(lo, hi)

    def _read_blocks(self, lo: int, hi: int) -> Iterator[StreamItem]:
        from airflow_cdc_provider.connectors.sources.postgres.row_columns import vectorized_rows

        vectorized = vectorized_rows(self.reader, self.messages[lo:hi])
        if vectorized is None:
            for n in range(lo, hi):
                yield from self._read_change(n)
            return
        others = [lo + int(n) for n in (~vectorized.plain).nonzero()[0]]
        block, taken = self._block(vectorized, lo, hi), 0
        for start, other in zip([lo, *(n + 1 for n in others)], [*others, hi], strict=True):
            if other > start:
                yield Block(self.reader.table, block.slice(taken, other - start))
                taken += other - start
            if other < hi:
                yield from self._read_change(other)

    def _block(self, vectorized: VectorizedRows, lo: int, hi: int) -> RecordBatch:
        """The columns of the change log: those of the rows, and those of their LSNs, ordinals and transactions."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from airflow_cdc_provider.connectors.json_columns import hex_digits

        rows, plain = vectorized.rows, pa.array(vectorized.plain)

        def of_transaction(name: str, kind: pa.DataType) -> pa.Array:
            return pa.array([getattr(transaction, name) for transaction in self._transactions], kind).take(indexes)

        indexes = pa.array(self._in_transaction[lo:hi]).filter(plain)
        ordinals = pa.array(self._ordinals[lo:hi], pa.int64()).filter(plain)
        lsns = pa.array(self._lsns[lo:hi], pa.int64()).filter(plain)
        change = [of_transaction("prefix", pa.string()), hex_digits(lsns, 16), hex_digits(ordinals, 8)]
        order_keys = pc.binary_join_element_wise(*change, "00", "")
        values = {
            **COMMON,
            "table": self.reader.table,
            "order_key": order_keys,
            "schema_id": self.reader.schema_id,
            "tx_id": of_transaction("tx_id", pa.string()),
            "tx_seq": ordinals,
            "commit_ts": of_transaction("commit_ts", log_columns().field("commit_ts").type),
            "position": of_transaction("position", pa.string()),
            "event_id": order_keys,
            **{name: rows.column(name) for name in rows.schema.names},
        }
        return log_batch(values, rows.num_rows)

    def _read_change(self, n: int) -> Iterator[StreamItem]:
        try:
            row = self.reader.read(messages.parse_row_change(self.messages[n]))
        except messages.MALFORMED as error:
            yield from self._unreadable(n, error)
            return
        if row is None:
            yield Ignored(1)
        elif row.key_changed:
            order = self._order(n)
            for phase, part in split_key_change(row):
                yield self._record(n, part, f"{order}{phase:02x}", phase, order)
        else:
            yield self._record(n, row, self._order(n) + "00", None, None)

    def _unreadable(self, n: int, error: Exception) -> Iterator[StreamItem]:
        """For a key change, the departing row is a record of its own and precedes the unreadable one."""
        order, transaction = self._order(n), self._transactions[self._in_transaction[n]]
        departing, undecoded = undecoded_record(self.reader, self.context, self.messages[n], error)
        if departing is not None:
            yield self._record(n, departing, f"{order}{DEPARTS:02x}", DEPARTS, order)
        order_key = f"{order}{ARRIVES if departing else 0:02x}"
        record = record_without_row(self.reader, Operation.UNREADABLE, order_key, self._ordinals[n], transaction)
        link = {"phase": ARRIVES, "link_id": order} if departing else {}
        after = canonical(to_plain(undecoded.record))
        yield replace(record, key=undecoded.key, after=after, **link)  # type: ignore[arg-type]

    def _order(self, n: int) -> str:
        """The order key up to the phase."""
        return f"{self._transactions[self._in_transaction[n]].prefix}{self._lsns[n]:016x}{self._ordinals[n]:08x}"

    def _record(self, n: int, row: Row, order_key: str, phase: int | None, link_id: str | None) -> ChangeRecord:
        """All arguments are positional: this may run once per row, and keywords would double its cost."""
        op, key_before, key, before, after, before_complete, after_complete, warnings, _ = row
        _, tx_id, commit_ts, position = self._transactions[self._in_transaction[n]]
        return ChangeRecord(
            self.reader.table,
            op,
            order_key,
            self.reader.schema_id,
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


def record_without_row(
    reader: RowReader, op: str, order_key: str, ordinal: int, transaction: Transaction
) -> ChangeRecord:
    """A control event, or the record of a row that cannot be decoded."""
    return ChangeRecord(
        reader.table,
        op,
        order_key,
        reader.schema_id,
        tx_id=transaction.tx_id,
        tx_seq=ordinal,
        commit_ts=transaction.commit_ts,
        position=transaction.position,
        event_id=order_key,
    )

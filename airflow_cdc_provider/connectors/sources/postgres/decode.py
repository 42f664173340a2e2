"""pgoutput messages → stream items. Pure: no connection, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from airflow_cdc_provider.connectors.new_columns import new_columns
from airflow_cdc_provider.connectors.source import Boundary, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.change_runs import ChangeRun, Transaction, control
from airflow_cdc_provider.connectors.sources.postgres.positions import lsn_text, position_of
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalogue, shape, stream_schema, unclear_columns
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

ROW_LETTERS = frozenset({messages.INSERT, messages.UPDATE, messages.DELETE})
BEHIND = "ff"
HEAD_BYTES = 5
"""The letter of a row change, and the number of its relation."""


class PgoutputDecoder:
    """Feed it the messages of a slot in order; it appends what they mean to ``items``.

    Transactions whose commit record starts before ``lo`` are passed over, but their relation messages count: the server
    sends each only once. ``ended`` is set when a transaction reaches beyond ``limit``; records of it that were given
    out already have no Boundary behind them. Of transactions that are fed together only the last one may get a
    Boundary.
    """

    def __init__(self, tasks: Sequence[TableTask], catalogue: Catalogue, epoch: int, lo: int, limit: int) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tasks = {task.table: task for task in tasks}
        self._catalogue = catalogue
        self._epoch = epoch_prefix(epoch)
        self._lo, self._limit = lo, limit
        self._tables: dict[int, RowReader | None] = {}
        self._relations: dict[int, bytes] = {}
        self._foreign: dict[int, str] = {}
        self._current: dict[str, TableSchema] = {}
        self._announced: set[str] = set()
        self._runs: dict[bytes, ChangeRun] = {}
        self._touched: dict[bytes, ChangeRun] = {}
        self._committed: int | None = None
        self._passing = True
        self._transaction = Transaction("", "", None, "")
        self._lsn = -1
        self._ordinal = 0
        self._ignored: Counter[str] = Counter()
        self._ignored_before: Counter[str] = Counter()

    def feed(self, received: Sequence[tuple[int, bytes]]) -> None:
        """Messages with their LSNs, up to the one with which the window has ended. A row change that cannot be
        understood becomes an ``unreadable`` record of its table. Any other message might be about anything: there it
        raises IntegrityBroken (SRC030), naming the place."""
        lsn, data = 0, b""
        try:
            for name, some in _stretches(received):
                if name:
                    lsn, data = some[0]
                    self._take_rows(name, some)
                else:
                    for lsn, data in some:
                        self._take(lsn, data)
                        if self.ended:
                            break
                if self.ended:
                    break
        except messages.MALFORMED as error:
            raise _unreadable(lsn, data, error) from error
        self._flush()

    def end(self) -> None:
        """Everything up to the limit was fed."""
        order_key = f"{self._epoch}{self._limit:016x}{0:024x}{BEHIND}"
        place = f'{{"commit":"{lsn_text(self._limit)}"}}'
        if items := new_columns(self._tasks.values(), self._current, order_key, place, self._is_unclear):
            self.items += [*items, Boundary(position_of(self._limit))]

    def _is_unclear(self, task: TableTask, _: frozenset[str]) -> bool:
        return bool(unclear_columns(task.schema, task, self._catalogue))

    def _take(self, lsn: int, data: bytes) -> None:
        match data[0]:
            case messages.BEGIN:
                self._begin(messages.parse_begin(data))
            case messages.COMMIT:
                self._commit(messages.parse_commit(data))
            case messages.RELATION:
                self._relation(data)
            case messages.TRUNCATE:
                if not self._passing:
                    self._truncate(lsn, messages.parse_truncate(data))
            case messages.TYPE | messages.ORIGIN | messages.MESSAGE:
                pass
            case unknown:
                raise messages.MalformedMessage(f"unknown message {unknown:#x}")

    def _take_rows(self, name: bytes, received: Sequence[tuple[int, bytes]]) -> None:
        """Row changes of one relation, one after the other. Changes that the row filter leaves out count, too."""
        if self._passing:
            return
        run = self._touched.get(name) or self._run(*received[0])
        if run is None:
            self._ignored[self._foreign[messages.relation_of(received[0][1])]] += len(received)
            return
        places, told = zip(*received, strict=True)
        lsns = list(accumulate(places, max, initial=self._lsn))[1:]
        run.add(told, lsns, self._ordinal + 1, self._transaction)
        self._lsn = lsns[-1]
        self._ordinal += len(received)

    def _begin(self, begin: messages.Begin) -> None:
        self._passing = begin.commit_lsn < self._lo
        self.ended = begin.commit_lsn >= self._limit
        position = f'{{"commit":"{lsn_text(begin.commit_lsn)}"}}'
        prefix = f"{self._epoch}{begin.commit_lsn:016x}"
        self._transaction = Transaction(prefix, str(begin.xid), begin.commit_ts, position)
        self._lsn = -1
        self._ordinal = 0

    def _commit(self, commit: messages.Commit) -> None:
        self.ended = commit.end_lsn > self._limit
        if self._passing or self.ended:
            return
        for run in self._touched.values():
            run.ended = len(run.messages)
        self._touched.clear()
        self._ignored_before += self._ignored
        self._ignored.clear()
        self._committed = commit.end_lsn

    def _flush(self) -> None:
        """Give out what was taken: what belongs to transactions that have ended, and behind their Boundary the rest."""
        for run in self._runs.values():
            self.items += run.read(0, run.ended)
        self.items += [Ignored(count, table) for table, count in self._ignored_before.items()]
        self._ignored_before.clear()
        if self._committed is not None:
            self.items.append(Boundary(position_of(self._committed)))
            self._committed = None
        for run in self._runs.values():
            self.items += run.read(run.ended, len(run.messages))
        self._runs.clear()
        self._touched.clear()

    def _relation(self, data: bytes) -> None:
        relation = messages.parse_relation(data)
        self._flush()
        self._relations[relation.oid] = data
        task = self._tasks.get(relation.table)
        if task is None:
            self._tables[relation.oid], self._foreign[relation.oid] = None, relation.table
            return
        schema = stream_schema(relation, task, self._catalogue)
        self._tables[relation.oid] = RowReader(relation, task, schema)

    def _table(self, oid: int) -> RowReader | None:
        try:
            return self._tables[oid]
        except KeyError:
            raise messages.MalformedMessage(f"no relation message for oid {oid}") from None

    def _run(self, lsn: int, data: bytes) -> ChangeRun | None:
        """Where a row change belongs. None where its table is none of ours."""
        oid = messages.relation_of(data)
        layout = self._table(oid)
        if layout is None:
            return None
        if self._current.get(layout.table) is not layout.schema:
            self._announce(lsn, layout)
        name = data[1:5]
        run = self._runs.get(name) or ChangeRun(layout, self._relations[oid])
        self._runs[name] = self._touched[name] = run
        return run

    def _truncate(self, lsn: int, truncate: messages.Truncate) -> None:
        self._flush()
        for oid in truncate.oids:
            layout = self._table(oid)
            if layout is None:
                self._ignored[self._foreign[oid]] += 1
                continue
            if self._current.get(layout.table) is not layout.schema:
                self._announce(lsn, layout)
            self.items.append(self._control(layout, Operation.TRUNCATE, self._next(lsn) + "00"))

    def _announce(self, lsn: int, layout: RowReader) -> None:
        """Say the schema of the records that follow; and, where it is not what the target holds, as a record too."""
        self._flush()
        held = layout.task.control.schema if layout.task.control else None
        before = self._current.get(layout.table, held)
        self._current[layout.table] = layout.schema
        if layout.schema.schema_id not in self._announced:
            self._announced.add(layout.schema.schema_id)
            self.items.append(layout.schema)
        if before is None or shape(before) != shape(layout.schema):
            unclear = unclear_columns(layout.schema, layout.task, self._catalogue)
            record = self._control(layout, Operation.SCHEMA, self._behind(lsn))
            after = canonical(to_plain(layout.schema))
            self.items.append(replace(record, after=after, warnings=("initial_unknown",) if unclear else ()))

    def _next(self, lsn: int) -> str:
        """The order key of the next change, up to the phase."""
        self._ordinal += 1
        self._lsn = max(lsn, self._lsn)
        return f"{self._transaction.prefix}{self._lsn:016x}{self._ordinal:08x}"

    def _behind(self, lsn: int) -> str:
        """An order key between the change before and the next one. Takes no ordinal: whether a schema is told depends
        on where the window starts, and a change must have one order key in every window."""
        return f"{self._transaction.prefix}{max(lsn, self._lsn):016x}{self._ordinal:08x}{BEHIND}"

    def _control(self, layout: RowReader, op: str, order_key: str) -> ChangeRecord:
        return control(layout, op, order_key, self._ordinal, self._transaction)


def _stretches(received: Sequence[tuple[int, bytes]]) -> Iterator[tuple[bytes, Sequence[tuple[int, bytes]]]]:
    """Row changes of one relation that follow each other, with its name; between them other messages, without one."""
    import numpy as np

    padded = b"".join([data[:HEAD_BYTES].ljust(HEAD_BYTES) for _, data in received])
    heads = np.frombuffer(padded, [("letter", "u1"), ("name", ">u4")])
    names = np.where(np.isin(heads["letter"], list(ROW_LETTERS)), heads["name"].astype(np.int64), -1)
    starts = np.flatnonzero(np.diff(names, prepend=-2)).tolist()
    for start, end in pairwise([*starts, len(received)]):
        some = received[start:end]
        yield (b"" if names[start] < 0 else some[0][1][1:HEAD_BYTES]), some


def _unreadable(lsn: int, data: bytes, error: Exception) -> IntegrityBroken:
    """The bytes themselves may hold values, so only their length and first letter are told."""
    return IntegrityBroken(
        Problem(
            "SRC030",
            "a message of the replication slot cannot be understood",
            where=f"WAL position {lsn_text(lsn)}",
            found=f"{type(error).__name__}: {error}"
            if isinstance(error, messages.MalformedMessage)
            else f"{type(error).__name__} in a message {data[:1]!r} of {len(data)} bytes",
            allowed="pgoutput, protocol version 1, in UTF-8",
            data="still in the slot: nothing of this window was sealed",
            do="check that source and provider versions go together; resync the table if the source is right",
        )
    )

"""pgoutput messages → stream items. Pure: no connection, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from airflow_cdc_provider.connectors.changed_columns import changed_columns
from airflow_cdc_provider.connectors.source import Boundary, HoleFound, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.change_runs import ChangeRun, Transaction, record_without_row
from airflow_cdc_provider.connectors.sources.postgres.partition_images import PartitionImages
from airflow_cdc_provider.connectors.sources.postgres.positions import lsn_text, position_of
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.connectors.sources.postgres.schemas import Catalog, has_unknown_initial, stream_schema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.schema import TableSchema

ROW_LETTERS = frozenset({messages.INSERT, messages.UPDATE, messages.DELETE})
LAST_PHASE = "ff"
HEAD_BYTES = 5
"""The letter of a row change, and the oid of its relation."""


class PgoutputDecoder:
    """Decodes the messages of a slot, fed in order, and appends the stream items to ``items``.

    Transactions whose commit record starts before ``lo`` are skipped, except for their relation messages, which the
    server sends only once. ``ended`` is set when a transaction extends beyond ``limit``; no Boundary follows those of
    its records that are in ``items`` already. Of transactions that are fed together only the last one may get a
    Boundary.
    """

    def __init__(self, tasks: Sequence[TableTask], catalog: Catalog, epoch: int, lo: int, limit: int) -> None:
        self.items: list[StreamItem] = []
        self.ended = False
        self._tasks = {task.name_in_source: task for task in tasks}
        self._copied = {oid: task for task in tasks if (oid := _copied_oid(task, catalog))}
        self._catalog = catalog
        self._epoch = epoch_prefix(epoch)
        self._lo, self._limit = lo, limit
        self._readers: dict[int, RowReader | None] = {}
        self._relations: dict[int, bytes] = {}
        self._partitions = PartitionImages()
        self._other_tables: dict[int, str] = {}
        self._not_copied: set[RowReader] = set()
        self._latest_schemas: dict[str, TableSchema] = {}
        self._announced: set[str] = set()
        self._runs: dict[bytes, ChangeRun] = {}
        self._open_runs: dict[bytes, ChangeRun] = {}
        self._committed: int | None = None
        self._skipping = True
        self._transaction = Transaction("", "", None, "")
        self._lsn = -1
        self._ordinal = 0
        self._ignored: Counter[str] = Counter()
        self._ignored_committed: Counter[str] = Counter()

    def feed(self, received: Sequence[tuple[int, bytes]]) -> None:
        """Decode messages with their LSNs, up to the message that ends the window. A row change that cannot be decoded
        becomes an ``unreadable`` record of its table. Any other malformed message may concern any table, so it raises
        IntegrityBroken (SRC030) with its LSN."""
        lsn, data = 0, b""
        try:
            for oid_bytes, group in _group_by_relation(received):
                if oid_bytes:
                    lsn, data = group[0]
                    self._take_rows(oid_bytes, group)
                else:
                    for lsn, data in group:
                        self._take(lsn, data)
                        if self.ended:
                            break
                if self.ended:
                    break
        except messages.MALFORMED as error:
            raise _malformed(lsn, data, error) from error
        self._flush()

    def end(self) -> None:
        """To be called when everything up to the limit was fed."""
        order_key = f"{self._epoch}{self._limit:016x}{0:024x}{LAST_PHASE}"
        position = f'{{"commit":"{lsn_text(self._limit)}"}}'
        if items := changed_columns(
            self._tasks.values(), self._latest_schemas, order_key, position, self._has_unknown_initial
        ):
            self.items += [*items, Boundary(position_of(self._limit))]

    def _has_unknown_initial(self, task: TableTask, _: frozenset[str]) -> bool:
        return has_unknown_initial(task.schema, task, self._catalog)

    def _take(self, lsn: int, data: bytes) -> None:
        if data[0] not in (messages.RELATION, messages.TYPE):
            self._partitions.other()
        match data[0]:
            case messages.BEGIN:
                self._begin(messages.parse_begin(data))
            case messages.COMMIT:
                self._commit(messages.parse_commit(data))
            case messages.RELATION:
                self._partitions.relation(data)
                self._relation(data)
            case messages.TRUNCATE:
                if not self._skipping:
                    self._truncate(lsn, messages.parse_truncate(data))
            case messages.TYPE | messages.ORIGIN | messages.MESSAGE:
                pass
            case unknown:
                raise messages.MalformedMessage(f"unknown message {unknown:#x}")

    def _take_rows(self, oid_bytes: bytes, received: Sequence[tuple[int, bytes]]) -> None:
        """Consecutive row changes of one relation. Changes that the row filter leaves out have ordinals, too."""
        oid = int.from_bytes(oid_bytes)
        if relation := self._partitions.change(oid):
            self._relation(relation)
        if self._skipping:
            return
        run = self._open_runs.get(oid_bytes) or self._run(*received[0])
        if run is None:
            self._ignored[self._other_tables[oid]] += len(received)
            return
        received_lsns, changes = zip(*received, strict=True)
        if lesser := self._partitions.images(oid):
            changes = tuple(map(lesser.marked, changes))
        lsns = list(accumulate(received_lsns, max, initial=self._lsn))[1:]
        run.add(changes, lsns, self._ordinal + 1, self._transaction)
        self._lsn = lsns[-1]
        self._ordinal += len(received)

    def _begin(self, begin: messages.Begin) -> None:
        self._skipping = begin.commit_lsn < self._lo
        self.ended = begin.commit_lsn >= self._limit
        position = f'{{"commit":"{lsn_text(begin.commit_lsn)}"}}'
        prefix = f"{self._epoch}{begin.commit_lsn:016x}"
        self._transaction = Transaction(prefix, str(begin.xid), begin.commit_ts, position)
        self._lsn = -1
        self._ordinal = 0

    def _commit(self, commit: messages.Commit) -> None:
        self.ended = commit.end_lsn > self._limit
        if self._skipping or self.ended:
            return
        for run in self._open_runs.values():
            run.ended = len(run.messages)
        self._open_runs.clear()
        self._ignored_committed += self._ignored
        self._ignored.clear()
        self._committed = commit.end_lsn

    def _flush(self) -> None:
        """Append the items of ended transactions, their Boundary, and then those of the open transaction."""
        for run in self._runs.values():
            self.items += run.read(0, run.ended)
        self.items += [Ignored(count, table) for table, count in self._ignored_committed.items()]
        self._ignored_committed.clear()
        if self._committed is not None:
            self.items.append(Boundary(position_of(self._committed)))
            self._committed = None
        for run in self._runs.values():
            self.items += run.read(run.ended, len(run.messages))
        self._runs.clear()
        self._open_runs.clear()

    def _relation(self, data: bytes) -> None:
        data = self._partitions.logged(data)
        relation = messages.parse_relation(data)
        self._flush()
        self._relations[relation.oid] = data
        task = self._copied.get(relation.oid) or self._tasks.get(relation.table)
        if task is None:
            self._readers[relation.oid], self._other_tables[relation.oid] = None, relation.table
            return
        schema = stream_schema(relation, task, self._catalog)
        table = self._catalog.tables.get(task.name_in_source)
        reader = self._readers[relation.oid] = RowReader(relation, task, schema, table is not None and table.limited)
        if task.identity and task.identity.table != str(relation.oid):
            self._not_copied.add(reader)

    def _reader(self, oid: int) -> RowReader | None:
        """None if the table is not one of ours."""
        try:
            return self._readers[oid]
        except KeyError:
            raise messages.MalformedMessage(f"no relation message for oid {oid}") from None

    def _run(self, lsn: int, data: bytes) -> ChangeRun | None:
        """The run of a row change. None if its table is not one of ours."""
        oid = messages.relation_of(data)
        reader = self._reader(oid)
        if reader is None:
            return None
        if self._latest_schemas.get(reader.table) is not reader.schema:
            self._announce(lsn, reader)
        self._mark_other_table(lsn, reader)
        oid_bytes = data[1:HEAD_BYTES]
        run = self._runs.get(oid_bytes) or ChangeRun(reader, self._relations[oid])
        self._runs[oid_bytes] = self._open_runs[oid_bytes] = run
        return run

    def _truncate(self, lsn: int, truncate: messages.Truncate) -> None:
        self._flush()
        for oid in truncate.oids:
            reader = self._reader(oid)
            if reader is None:
                self._ignored[self._other_tables[oid]] += 1
                continue
            if self._latest_schemas.get(reader.table) is not reader.schema:
                self._announce(lsn, reader)
            self._mark_other_table(lsn, reader)
            self.items.append(self._control_event(reader, Operation.TRUNCATE, self._next_order(lsn) + "00"))

    def _announce(self, lsn: int, reader: RowReader) -> None:
        """Append the schema of the records that follow, and a schema record if it differs from the previous one."""
        self._flush()
        latest = self._latest_schemas.get(reader.table)
        known = [latest] if latest else [view.schema for view in reader.task.views]
        self._latest_schemas[reader.table] = reader.schema
        if reader.schema.schema_id not in self._announced:
            self._announced.add(reader.schema.schema_id)
            self.items.append(reader.schema)
        if any(previous is None or previous.shape != reader.schema.shape for previous in known):
            unknown_initial = has_unknown_initial(reader.schema, reader.task, self._catalog)
            record = self._control_event(reader, Operation.SCHEMA, self._order_before_next(lsn))
            after = canonical(reader.schema.plain())
            self.items.append(replace(record, after=after, warnings=("initial_unknown",) if unknown_initial else ()))

    def _mark_other_table(self, lsn: int, reader: RowReader) -> None:
        """Append a hole before changes of a table that is not the one which this run found under the name."""
        if reader in self._not_copied:
            self._flush()
            detail = "changes of another table that had its name for some time"
            self.items.append(HoleFound(reader.table, UNLOGGED, self._order_before_next(lsn), detail))

    def _next_order(self, lsn: int) -> str:
        """The order key of the next change, up to the phase."""
        self._ordinal += 1
        self._lsn = max(lsn, self._lsn)
        return f"{self._transaction.prefix}{self._lsn:016x}{self._ordinal:08x}"

    def _order_before_next(self, lsn: int) -> str:
        """An order key between the previous change and the next one. It takes no ordinal: the start of the window
        determines whether a schema is announced, and a change must have the same order key in every window."""
        return f"{self._transaction.prefix}{max(lsn, self._lsn):016x}{self._ordinal:08x}{LAST_PHASE}"

    def _control_event(self, reader: RowReader, op: str, order_key: str) -> ChangeRecord:
        return record_without_row(reader, op, order_key, self._ordinal, self._transaction)


def _copied_oid(task: TableTask, catalog: Catalog) -> int:
    """The oid of the copied table, unless another table has its name now: then names decide, because the copied table
    may be the one that another task copies since. 0 if there is none."""
    identity = task.control.identity if task.control else None
    named = catalog.tables.get(task.name_in_source)
    if identity is None or (named and str(named.oid) != identity.table):
        return 0
    return int(identity.table)


def _group_by_relation(received: Sequence[tuple[int, bytes]]) -> Iterator[tuple[bytes, Sequence[tuple[int, bytes]]]]:
    """Groups of consecutive row changes of one relation, with the bytes of its oid, and of other messages, without."""
    import numpy as np

    padded = b"".join([data[:HEAD_BYTES].ljust(HEAD_BYTES) for _, data in received])
    heads = np.frombuffer(padded, [("letter", "u1"), ("oid", ">u4")])
    oids = np.where(np.isin(heads["letter"], list(ROW_LETTERS)), heads["oid"].astype(np.int64), -1)
    starts = np.flatnonzero(np.diff(oids, prepend=-2)).tolist()
    for start, end in pairwise([*starts, len(received)]):
        group = received[start:end]
        yield (b"" if oids[start] < 0 else group[0][1][1:HEAD_BYTES]), group


def _malformed(lsn: int, data: bytes, error: Exception) -> IntegrityBroken:
    """The bytes may contain values, so the error has only their length and first letter."""
    return IntegrityBroken.of(
        "SRC030",
        "a message of the replication slot cannot be decoded",
        where=f"WAL position {lsn_text(lsn)}",
        found=f"{type(error).__name__}: {error}"
        if isinstance(error, messages.MalformedMessage)
        else f"{type(error).__name__} in a message {data[:1]!r} of {len(data)} bytes",
        allowed="pgoutput, protocol version 1, in UTF-8",
        data="the changes are still in the slot; nothing of this window was sealed",
        do="check that source and provider versions are compatible; resync the table if the source is correct",
    )

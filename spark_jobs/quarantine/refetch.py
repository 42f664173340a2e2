"""Keys whose rows only the source can tell: it left out news of them, or sent it without the values.

Such a key waits with everything behind it, like one with a bad record, but nobody has to decide: the source is asked
for the row at once. What it answers is the row as it is by then, which may be newer than anything in the log. So it
takes the place of the news that was missing, and what had been committed before it was taken says nothing new, also
where it comes in windows that were begun before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import FetchesRows
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import IntegrityBroken, Problem, Retryable, SourceUnavailable
from airflow_cdc_provider.core.log.carry_over import Carried, CarryOver
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import own_key
from airflow_cdc_provider.core.table.merge_plan import DELETED
from airflow_cdc_provider.core.table.schema import Regime, TableSchema
from airflow_cdc_provider.staging.change_log import ChangeLog
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.small_frames import small_frame, texts
from spark_jobs.folds.keyed import is_incomplete
from spark_jobs.folds.keyed import own_key as key_column
from spark_jobs.runtime.job import Job
from spark_jobs.windows import driver_reads
from spark_jobs.windows.driver_reads import CarriedRecord
from spark_jobs.windows.log_reader import WindowSlice
from spark_jobs.writers.absent_rows import entries_without_row

NEXT_WINDOWS = 2
"""What was committed before rows were taken may stand in the next window, should an attempt that began earlier seal it,
but in none behind that one."""


@dataclass(frozen=True)
class DirtyKeys:
    """``since``: when it was met first; empty where that is now."""

    record: ChangeRecord
    reason: str
    since: str = ""

    @property
    def key(self) -> str:
        return own_key(self.record) or ""

    @property
    def carried(self) -> CarriedRecord:
        return CarriedRecord(self.record, Carried.DIRTY, self.since or None, self.reason)


@dataclass(frozen=True)
class FetchedRows:
    """``rows`` stand in the places of what was missing: whole, or deletes. ``open``: no answer yet, and why not."""

    rows: tuple[ChangeRecord, ...] = ()
    open: tuple[DirtyKeys, ...] = ()
    error: Retryable | None = None


def dirty_keys_of(log: ChangeLog, windows: Sequence[WindowSlice], after: str) -> list[DirtyKeys]:
    """News without values behind the order key."""
    unsent = pc.list_value_length(pc.field("refetch")) > 0
    wanted = (pc.field("order_key") > after) & ((pc.field("op") == Operation.GAP.value) | unsent)
    return [DirtyKeys(record, _why(record)) for _, record in driver_reads.landed(log, windows, wanted)]


def _why(record: ChangeRecord) -> str:
    if record.op == Operation.GAP:
        return "the source says only that the row changed"
    return f"the source did not send {', '.join(record.refetch).replace('*', 'the row')}"


def carried(log: ChangeLog, carry: CarryOver) -> list[DirtyKeys]:
    rows = driver_reads.carried(log, carry, Carried.DIRTY)
    return [DirtyKeys(one.record, one.reason or "", one.since or "") for one in rows]


def orphan_updates(entries: DataFrame, images: ImageColumns, target: Callable[[], DataFrame]) -> list[DirtyKeys]:
    """The first entries of keys that change some columns of a row which the target does not hold. ``entries``: changes
    of rows."""
    schema = images.schema
    ordered = F.struct("op", is_incomplete().alias("incomplete"), "phase", "order_key", "tx_id")
    first = entries.withColumn("k", key_column()).groupBy("k").agg(F.min_by(ordered, "order_key").alias("first"))
    partial = (F.col("first.op") == Operation.UPDATE.value) & F.col("first.incomplete") & F.col("first.phase").isNull()
    asked = first.where(partial).select("k", "first.order_key", "first.tx_id")
    rows = target()
    live = rows.where(~F.col(DELETED)) if DELETED in rows.columns else rows
    found = entries_without_row(asked, images, live).collect()
    return [
        DirtyKeys(
            ChangeRecord(
                schema.table,
                Operation.GAP.value,
                row["order_key"],
                schema.schema_id,
                key=row["k"],
                tx_id=row["tx_id"],
            ),
            "a change of some columns met no row",
        )
        for row in found
    ]


def fetch_rows(job: Job, task: TableTask, schema: TableSchema, dirty: Sequence[DirtyKeys]) -> FetchedRows:
    """Ask the source for the rows. Raises IntegrityBroken where it cannot be asked for single ones."""
    source, name = job.source, job.step.definition.name
    if not isinstance(source, FetchesRows) or schema.regime is not Regime.SINGLE or not all(one.key for one in dirty):
        raise IntegrityBroken(_cannot_be_asked(name, dirty[0]))
    last = {one.key: one.record for one in sorted(dirty, key=lambda one: one.record.order_key)}
    rows: dict[str, ChangeRecord] = {}
    error: Retryable | None = None
    try:
        for row in source.fetch(task, schema, tuple(last.values())):
            key = own_key(row) or ""
            rows[key] = replace(row, order_key=last[key].order_key, schema_id=schema.schema_id)
    except Retryable as said:  # what has been answered counts, the others wait
        error = said
    open_ = tuple(one for one in dirty if one.key not in rows)
    if open_ and error is None:
        error = SourceUnavailable(_no_answer(task.table, open_))
    return FetchedRows(tuple(rows.values()), open_, error)


def memory(row: ChangeRecord, now: str, sealed: int) -> CarriedRecord:
    """What stays in the carry-over of a row that was taken when window ``sealed`` was the last one."""
    taken = replace(row, before=None, after=None)
    return CarriedRecord(taken, Carried.FETCHED, now, None, str(sealed + NEXT_WINDOWS))


def with_returns(memories: Sequence[CarriedRecord], entries: DataFrame) -> list[CarriedRecord]:
    """The same, but rows that were gone and are told whole by the entries are there again: their next changes count."""
    gone = {own_key(one.record) for one in memories if one.record.op == Operation.DELETE}
    if not gone:
        return list(memories)
    keys = small_frame(entries.sparkSession, ((key,) for key in gone), texts("k"))
    told = entries.where(~_says_part() & (F.col("op") != Operation.DELETE.value))
    back = {row["k"] for row in told.withColumn("k", key_column()).join(keys, "k").select("k").distinct().collect()}
    return [replace(one, record=_there(one.record)) if own_key(one.record) in back else one for one in memories]


def _there(gone: ChangeRecord) -> ChangeRecord:
    return replace(gone, op=Operation.READ, key_before=None, key=gone.key_before)


def remembered(log: ChangeLog, carry: CarryOver) -> list[CarriedRecord]:
    return driver_reads.carried(log, carry, Carried.FETCHED)


def without_superseded(entries: DataFrame, taken: Iterable[ChangeRecord]) -> DataFrame:
    """The entries that may say something newer than the rows that were ``taken``. Where a row was gone, a change of
    some of its columns says nothing new until the row is told whole."""
    if not (taken := list(taken)):
        return entries
    rows = driver_reads.frame(entries.sparkSession, map(CarriedRecord, taken)).withColumn("taken", key_column())
    known = rows.groupBy("taken").agg(F.max("order_key").alias("taken_order"), F.max("commit_ts").alias("taken_at"))
    told = entries.join(known, key_column() == F.col("taken"), "left")
    before = (F.col("order_key") <= F.col("taken_order")) | (F.col("commit_ts") < F.col("taken_at"))
    newer = told.where(~F.coalesce(before, F.lit(False))).drop("taken", "taken_order", "taken_at")
    gone = {own_key(one) for one in taken if one.op == Operation.DELETE}
    return _without_changes_of_nothing(newer, gone) if gone else newer


def _without_changes_of_nothing(entries: DataFrame, gone: Iterable[str | None]) -> DataFrame:
    keys = small_frame(entries.sparkSession, ((key,) for key in gone), texts("gone"))
    told = entries.join(keys, key_column() == F.col("gone"), "left")
    partial = _says_part()
    births = told.where(F.col("gone").isNotNull() & ~partial).groupBy("gone").agg(F.min("order_key").alias("born"))
    nothing = F.col("gone").isNotNull() & partial & F.coalesce(F.col("order_key") < F.col("born"), F.lit(True))
    return told.join(births, "gone", "left").where(~nothing).drop("gone", "born")


def _says_part() -> SparkColumn:
    return (F.col("op") == Operation.UPDATE.value) & is_incomplete()


def without_dirty(entries: DataFrame, dirty: Iterable[DirtyKeys]) -> DataFrame:
    """The entries of all other keys: for a repair, which asks nobody."""
    keys = small_frame(entries.sparkSession, {(one.key,) for one in dirty}, texts("k"))
    return entries.withColumn("k", key_column()).join(keys, "k", "left_anti").drop("k")


def _cannot_be_asked(name: str, first: DirtyKeys) -> Problem:
    return Problem(
        "TGT038",
        f"rows of {first.record.table} are known to the source only, which cannot be asked for single rows",
        where=f"{first.record.table}, key {first.key or 'unknown'}",
        found=first.reason,
        do=f"airflow cdc resync {name} --table {first.record.table}",
        data="nothing of the batch was applied; the change log keeps it",
    )


def not_representable(open_: Sequence[DirtyKeys]) -> Problem:
    """Rows came that the target cannot hold."""
    first = open_[0]
    return Problem(
        "TGT039",
        f"a row of {first.record.table} that was fetched from the source does not fit",
        where=f"{first.record.table}, key {first.key}",
        found=first.reason,
        do="mend the value at the source: the row is asked for again in each run",
        data="its changes wait in the carry-over; all other rows go on",
    )


def _no_answer(table: str, open_: Sequence[DirtyKeys]) -> Problem:
    keys = {one.key for one in open_}
    return Problem(
        "SRC020",
        f"the source gave no answer for {len(keys):,} rows of {table}",
        where=f"{table}, for example key {open_[0].key}",
        found=open_[0].reason,
        do="nothing: they are asked for again in each run; if that lasts, look whether the login may read them",
        data="their changes wait in the carry-over; all other rows go on",
    )

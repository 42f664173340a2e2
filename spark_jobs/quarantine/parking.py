"""Records of a batch that cannot be applied, and the later records of their keys, which wait for them (are parked).

A key is released by a record with its complete row, or by its delete: then earlier records do not matter. Otherwise it
waits from the start of the record's transaction on, because two rows may have one key within a transaction. A row that
moves to another key without all its columns ties the two keys together: if one half of the move waits, so does the
other.

Such records are few, so the driver collects what it needs about them; all other records stay in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ARRIVES, FIELDS, Operation
from spark_jobs.batches.small_frames import small_frame, text_schema
from spark_jobs.folds.lives import BEGINS
from spark_jobs.folds.record_columns import IMAGES, is_incomplete, own_key
from spark_jobs.quarantine.carry_over import CARRY_COLUMNS

DELETE = Operation.DELETE.value


class Mark(NamedTuple):
    """A position in the entries of a key."""

    k: str
    mark: str
    tx: str | None


class MarkContext(NamedTuple):
    """The surroundings of a mark, as order keys: where its key is ``settled`` after it, where the key is ``tied`` to
    another one after it, and where its transaction has ``begun``. None where there is no such position."""

    at: Mark
    settled: str | None
    tied: str | None
    begun: str | None

    @property
    def is_open(self) -> bool:
        return self.settled is None or (self.tied is not None and self.tied < self.settled)


@dataclass(frozen=True)
class Parking:
    """``waits``: bad and dirty records of known keys, as rows of a carry-over; ``marks``: their positions.
    ``discarded_inserts``: discarded records that would have created a row. ``ignore_deletes``: a delete does not settle
    a key. ``doubly_held``: two rows may have one key within a transaction. ``moves``: some rows move without all
    columns. ``now``: ISO time."""

    waits: DataFrame
    marks: Sequence[Mark]
    discarded_inserts: Sequence[Mark]
    ignore_deletes: bool
    doubly_held: bool
    moves: bool
    now: str


@dataclass(frozen=True)
class PartitionedRecords:
    """``applied``: change records for the fold. ``waiting``: records that still wait, as ``write_carry`` expects them;
    ``parks``: there may be some. ``orphans``: how many partial changes are dropped with a discarded row."""

    applied: DataFrame
    waiting: DataFrame
    parks: bool
    orphans: int


def partition_records(records: DataFrame, parking: Parking) -> PartitionedRecords:
    """``records``: change records of rows, as rows of a carry-over without ``kind``; ``since`` is set where they were
    parked before."""
    entries = _marked(records.unionByName(parking.waits), parking.moves, parking.ignore_deletes)
    orphans = 0
    if parking.discarded_inserts:
        entries, orphans = _without_orphans(entries, parking)
    cuts = _cuts(entries, parking)
    joined = entries.join(small_frame(entries.sparkSession, cuts, text_schema("k", "cut")), "k", "left")
    waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
    waiting = joined.where(waits).withColumns(
        {"kind": F.coalesce("kind", F.lit(Carried.PARKED)), "since": F.coalesce("since", F.lit(parking.now))}
    )
    applied = joined.where(~waits & F.col("kind").isNull()).select(*FIELDS)
    return PartitionedRecords(
        applied, waiting.dropDuplicates(["k", "order_key"]).select(*FIELDS, *CARRY_COLUMNS), bool(cuts), orphans
    )


def settled_marks(records: DataFrame, marks: Sequence[Mark], ignore_deletes: bool) -> set[Mark]:
    """The marks after which a record has the complete row, or deletes it."""
    entries = _marked(records, moves=False, ignore_deletes=ignore_deletes)
    return {context.at for context in _mark_contexts(entries, marks, doubly_held=False) if not context.is_open}


def _marked(entries: DataFrame, moves: bool, ignore_deletes: bool) -> DataFrame:
    """``tied``: half of a move without all columns. ``settles``: earlier records of the key do not matter."""
    entries = entries.withColumn("k", own_key())
    if moves:
        halves = entries.where((F.col("phase") == ARRIVES) & ~F.col("after_complete")).select("link_id").distinct()
        entries = entries.join(halves.withColumn("tied", F.lit(True)), "link_id", "left")
        entries = entries.withColumn("tied", F.coalesce("tied", F.lit(False)))
    else:
        entries = entries.withColumn("tied", F.lit(False))
    complete = F.col("op").isin(*BEGINS) | (F.col("op").isin(*IMAGES) & F.col("after_complete"))
    complete = complete & (F.coalesce(F.size("refetch"), F.lit(0)) < 1)
    deleted = (F.col("op") == DELETE) & F.lit(not ignore_deletes)
    marked = entries.withColumn("settles", F.col("kind").isNull() & ~F.col("tied") & (complete | deleted))
    return marked.localCheckpoint() if moves else marked  # read several times, also by the fold


def _without_orphans(entries: DataFrame, parking: Parking) -> tuple[DataFrame, int]:
    """Drops partial changes of a discarded row, up to where its key has a complete row again; also returns their
    number."""
    spans = [
        (context.at.k, context.at.mark, context.settled)
        for context in _mark_contexts(entries, parking.discarded_inserts, doubly_held=False)
    ]
    discarded = small_frame(entries.sparkSession, spans, text_schema("k", "discarded", "complete_again"))
    before_complete = F.coalesce(F.col("order_key") < F.col("complete_again"), F.lit(True))
    inside = (F.col("order_key") > F.col("discarded")) & before_complete
    partial = F.col("kind").isNull() & is_incomplete()
    joined = entries.join(discarded, "k", "left")
    orphan = F.coalesce(inside & partial, F.lit(False))
    return joined.where(~orphan).drop("discarded", "complete_again"), joined.where(orphan).count()


def _cuts(entries: DataFrame, parking: Parking) -> list[tuple[str, str]]:
    """Keys that wait, each with the order key from which it waits."""
    marks = set(parking.marks)
    while marks:
        cuts: dict[str, str] = {}
        for context in _mark_contexts(entries, marks, parking.doubly_held):
            if context.is_open:
                begun = min(context.at.mark, context.begun or context.at.mark)
                cuts[context.at.k] = min(begun, cuts.get(context.at.k, begun))
        linked = set(_linked_halves(entries, cuts)) - marks if parking.moves and cuts else set()
        if not linked:
            return list(cuts.items())
        marks |= linked
    return []


def _mark_contexts(entries: DataFrame, marks: Iterable[Mark], doubly_held: bool) -> list[MarkContext]:
    mark_rows = small_frame(entries.sparkSession, marks, text_schema("k", "mark", "tx"))
    order, after_mark = F.col("order_key"), F.col("order_key") >= F.col("mark")
    same = F.coalesce(F.col("tx_id") == F.col("tx"), F.lit(False))  # a source without transactions has no id
    may_settle = ~same if doubly_held else F.lit(True)
    rows = (
        entries.join(mark_rows, "k")
        .groupBy("k", "mark", "tx")
        .agg(
            F.min(F.when(F.col("settles") & after_mark & may_settle, order)).alias("settled"),
            F.min(F.when(F.col("tied") & after_mark, order)).alias("tied"),
            F.min(F.when(same, order)).alias("begun"),
        )
        .collect()
    )
    return [
        MarkContext(Mark(row["k"], row["mark"], row["tx"]), row["settled"], row["tied"], row["begun"]) for row in rows
    ]


def _linked_halves(entries: DataFrame, cuts: dict[str, str]) -> list[Mark]:
    """Halves of moves that do not wait although their other half does."""
    waiting_keys = small_frame(entries.sparkSession, cuts.items(), text_schema("k", "cut"))
    halves = entries.where("tied").select("k", "order_key", "tx_id", "link_id").join(waiting_keys, "k", "left")
    waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
    links = halves.where(waits).select("link_id").distinct()
    rows = halves.where(~waits).join(links, "link_id", "left_semi").distinct().collect()
    return [Mark(row["k"], row["order_key"], row["tx_id"]) for row in rows]

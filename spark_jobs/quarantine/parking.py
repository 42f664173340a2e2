"""Records of a batch that cannot be applied, and what waits for them: everything of their keys behind them.

A key is let go by what tells its row whole again (or that it is gone): then nothing before matters. Else it waits from
the beginning of that record's transaction on, for within one two rows may hold a key. A row that moves to another
key without all its columns ties the two keys together: where one half of the move waits, the other one does, too.

Such records are few, so what is asked about them fits on the driver; the others stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ARRIVES, FIELDS, Operation
from spark_jobs.batches.small_frames import small_frame, texts
from spark_jobs.folds.lives import BEGINS
from spark_jobs.folds.record_columns import IMAGES, is_incomplete, own_key
from spark_jobs.quarantine.carry_over import BESIDE

DELETE = Operation.DELETE.value


class Mark(NamedTuple):
    """A place in the entries of a key."""

    k: str
    mark: str
    tx: str | None


class Around(NamedTuple):
    """What stands around a mark: behind it where its key is ``settled`` and where it is ``tied`` to another one, before
    it where its transaction has ``begun``. Order keys, None where there is no such place."""

    at: Mark
    settled: str | None
    tied: str | None
    begun: str | None

    @property
    def is_open(self) -> bool:
        return self.settled is None or (self.tied is not None and self.tied < self.settled)


@dataclass(frozen=True)
class Parking:
    """``waits``: bad and dirty records of known keys, as rows of a carry-over, and ``marks``: where they stand.
    ``births``: records that are given up and would have begun a row. ``ignore_deletes``: a delete says nothing of the
    row. ``doubly_held``: two rows may hold a key within a transaction. ``moves``: some rows move without all columns.
    ``now``: ISO time."""

    waits: DataFrame
    marks: Sequence[Mark]
    births: Sequence[Mark]
    ignore_deletes: bool
    doubly_held: bool
    moves: bool
    now: str


@dataclass(frozen=True)
class PartitionedRecords:
    """``applied``: change records for the fold. ``waiting``: those that still matter and what is parked, as
    ``carry_files`` wants it; ``parks``: there may be some. ``orphans``: how many partial changes go with a row that is
    given up."""

    applied: DataFrame
    waiting: DataFrame
    parks: bool
    orphans: int


def part(records: DataFrame, parking: Parking) -> PartitionedRecords:
    """``records``: change records of rows, as rows of a carry-over without ``kind``; ``since`` where they were parked
    before."""
    entries = _marked(records.unionByName(parking.waits), parking.moves, parking.ignore_deletes)
    orphans = 0
    if parking.births:
        entries, orphans = _without_orphans(entries, parking)
    cuts = _cuts(entries, parking)
    told = entries.join(small_frame(entries.sparkSession, cuts, texts("k", "cut")), "k", "left")
    waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
    waiting = told.where(waits).withColumns(
        {"kind": F.coalesce("kind", F.lit(Carried.PARKED)), "since": F.coalesce("since", F.lit(parking.now))}
    )
    applied = told.where(~waits & F.col("kind").isNull()).select(*FIELDS)
    return PartitionedRecords(
        applied, waiting.dropDuplicates(["k", "order_key"]).select(*FIELDS, *BESIDE), bool(cuts), orphans
    )


def settled(records: DataFrame, marks: Sequence[Mark], ignore_deletes: bool) -> set[Mark]:
    """The marks behind which the row is told whole, or gone."""
    entries = _marked(records, moves=False, ignore_deletes=ignore_deletes)
    return {one.at for one in _around(entries, marks, doubly_held=False) if not one.is_open}


def _marked(entries: DataFrame, moves: bool, ignore_deletes: bool) -> DataFrame:
    """``tied``: half of a move without all columns. ``settles``: nothing of the key before it matters."""
    entries = entries.withColumn("k", own_key())
    if moves:
        halves = entries.where((F.col("phase") == ARRIVES) & ~F.col("after_complete")).select("link_id").distinct()
        entries = entries.join(halves.withColumn("tied", F.lit(True)), "link_id", "left")
        entries = entries.withColumn("tied", F.coalesce("tied", F.lit(False)))
    else:
        entries = entries.withColumn("tied", F.lit(False))
    whole = F.col("op").isin(*BEGINS) | (F.col("op").isin(*IMAGES) & F.col("after_complete"))
    whole = whole & (F.coalesce(F.size("refetch"), F.lit(0)) < 1)
    gone = (F.col("op") == DELETE) & F.lit(not ignore_deletes)
    marked = entries.withColumn("settles", F.col("kind").isNull() & ~F.col("tied") & (whole | gone))
    return marked.localCheckpoint() if moves else marked  # asked again and again, by the fold, too


def _without_orphans(entries: DataFrame, parking: Parking) -> tuple[DataFrame, int]:
    """Partial changes of a row that never began go, up to where its key is told whole; and how many those are."""
    spans = [(one.at.k, one.at.mark, one.settled) for one in _around(entries, parking.births, doubly_held=False)]
    given_up = small_frame(entries.sparkSession, spans, texts("k", "given_up", "whole_again"))
    before = F.coalesce(F.col("order_key") < F.col("whole_again"), F.lit(True))
    inside = (F.col("order_key") > F.col("given_up")) & before
    partial = F.col("kind").isNull() & is_incomplete()
    told = entries.join(given_up, "k", "left")
    orphan = F.coalesce(inside & partial, F.lit(False))
    return told.where(~orphan).drop("given_up", "whole_again"), told.where(orphan).count()


def _cuts(entries: DataFrame, parking: Parking) -> list[tuple[str, str]]:
    """Keys that wait, each with the order key from which on it does."""
    marks = set(parking.marks)
    while marks:
        cuts: dict[str, str] = {}
        for one in _around(entries, marks, parking.doubly_held):
            if one.is_open:
                begun = min(one.at.mark, one.begun or one.at.mark)
                cuts[one.at.k] = min(begun, cuts.get(one.at.k, begun))
        dragged = set(_dragged(entries, cuts)) - marks if parking.moves and cuts else set()
        if not dragged:
            return list(cuts.items())
        marks |= dragged
    return []


def _around(entries: DataFrame, marks: Iterable[Mark], doubly_held: bool) -> list[Around]:
    places = small_frame(entries.sparkSession, marks, texts("k", "mark", "tx"))
    order, behind = F.col("order_key"), F.col("order_key") >= F.col("mark")
    same = F.coalesce(F.col("tx_id") == F.col("tx"), F.lit(False))  # a source without transactions tells no id
    elsewhere = ~same if doubly_held else F.lit(True)
    rows = (
        entries.join(places, "k")
        .groupBy("k", "mark", "tx")
        .agg(
            F.min(F.when(F.col("settles") & behind & elsewhere, order)).alias("settled"),
            F.min(F.when(F.col("tied") & behind, order)).alias("tied"),
            F.min(F.when(same, order)).alias("begun"),
        )
        .collect()
    )
    return [Around(Mark(row["k"], row["mark"], row["tx"]), row["settled"], row["tied"], row["begun"]) for row in rows]


def _dragged(entries: DataFrame, cuts: dict[str, str]) -> list[Mark]:
    """Halves of moves that do not wait though their other half does."""
    waiting_keys = small_frame(entries.sparkSession, cuts.items(), texts("k", "cut"))
    halves = entries.where("tied").select("k", "order_key", "tx_id", "link_id").join(waiting_keys, "k", "left")
    waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
    links = halves.where(waits).select("link_id").distinct()
    rows = halves.where(~waits).join(links, "link_id", "left_semi").distinct().collect()
    return [Mark(row["k"], row["order_key"], row["tx_id"]) for row in rows]

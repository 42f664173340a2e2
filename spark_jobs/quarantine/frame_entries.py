"""The row changes of a batch as a Spark frame. What the driver collects is about few keys; all other records stay in
Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ARRIVES, FIELDS, ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey, own_key
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.batches.small_frames import small_frame, text_schema
from spark_jobs.folds.lives import BEGINS
from spark_jobs.folds.record_columns import IMAGES, is_incomplete
from spark_jobs.folds.record_columns import own_key as key_column
from spark_jobs.quarantine.carry_over import CARRY_COLUMNS
from spark_jobs.quarantine.entries import Mark, MarkContext, Span, Split
from spark_jobs.quarantine.unrepresentable import unrepresentable_records
from spark_jobs.windows.driver_reads import CarriedRecord, carried_frame

DELETE = Operation.DELETE.value


@dataclass(frozen=True)
class FrameEntries:
    """``frame``: as rows of a carry-over."""

    frame: DataFrame

    @staticmethod
    def of_records(records: DataFrame) -> FrameEntries:
        """``records``: change records."""
        empty = {name: F.lit(None).cast("string") for name in CARRY_COLUMNS}
        return FrameEntries(records.withColumns(empty).select(*FIELDS, *CARRY_COLUMNS))

    @staticmethod
    def of_parked(carried: DataFrame, after: str) -> FrameEntries:
        """The parked records of a carry-over, above an order key."""
        parked = carried.where((F.col("kind") == Carried.PARKED) & (F.col("order_key") > after))
        return FrameEntries(parked.withColumn("kind", F.lit(None).cast("string")))

    @property
    def positions(self) -> DataFrame:
        """Key (``k``) and ``order_key``."""
        return self.frame.select(key_column().alias("k"), "order_key")

    def of(self, records: Iterable[CarriedRecord]) -> FrameEntries:
        return FrameEntries(carried_frame(self.frame.sparkSession, records))

    def union(self, other: FrameEntries) -> FrameEntries:
        return FrameEntries(self.frame.unionByName(other.frame))

    def without(self, records: Iterable[RecordKey]) -> FrameEntries:
        drop_rows = small_frame(self.frame.sparkSession, set(records), text_schema("drop_key", "drop_order"))
        key = F.coalesce(key_column(), F.lit(""))
        same = (key == F.col("drop_key")) & (F.col("order_key") == F.col("drop_order"))
        return FrameEntries(self.frame.join(drop_rows, same, "left_anti"))

    def without_superseded(self, fetched: Sequence[ChangeRecord]) -> FrameEntries:
        order, at = F.col("order_key"), F.col("commit_ts")
        return self._without((order <= F.col("taken_order")) | (at < F.col("taken_at")), fetched)

    def without_fetched(self, fetched: Sequence[ChangeRecord]) -> FrameEntries:
        order, gap = F.col("order_key"), F.col("op") == Operation.GAP.value
        has_no_values = gap | (F.coalesce(F.size("refetch"), F.lit(0)) > 0)
        taken = F.col("taken_order")
        return self._without((order == taken) | ((order < taken) & has_no_values), fetched, after=taken)

    def _without(
        self, replaced: SparkColumn, fetched: Sequence[ChangeRecord], after: SparkColumn | None = None
    ) -> FrameEntries:
        """``replaced``: a condition that may read ``taken_order`` and ``taken_at``, of the fetched row of the key.
        ``after``: earlier entries of rows that did not exist remain."""
        if not fetched:
            return self
        rows = carried_frame(self.frame.sparkSession, map(CarriedRecord, fetched))
        by_key = rows.withColumn("taken", key_column()).groupBy("taken")
        times = by_key.agg(F.max("order_key").alias("taken_order"), F.max("commit_ts").alias("taken_at"))
        joined = self.frame.join(times, key_column() == F.col("taken"), "left")
        newer = joined.where(~F.coalesce(replaced, F.lit(False)))
        deleted = {own_key(row) for row in fetched if row.op == Operation.DELETE}
        if deleted:
            earlier = F.lit(False) if after is None else F.coalesce(F.col("order_key") < after, F.lit(False))
            later = _without_updates_of_missing_rows(newer.where(~earlier), deleted)
            newer = later.unionByName(newer.where(earlier))
        return FrameEntries(newer.drop("taken", "taken_order", "taken_at"))

    def keys_with_rows(self, keys: Collection[str]) -> set[str]:
        wanted = small_frame(self.frame.sparkSession, ((key,) for key in keys), text_schema("k"))
        complete = self.frame.where(~_is_partial_update() & (F.col("op") != DELETE))
        found = complete.withColumn("k", key_column()).join(wanted, "k").select("k").distinct().collect()
        return {row["k"] for row in found}

    def marked(self, moves: bool, ignore_deletes: bool) -> MarkedFrame:
        entries = self.frame.withColumn("k", key_column())
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
        return MarkedFrame(marked.localCheckpoint() if moves else marked)  # read several times, also by the fold

    def newly_parked(self, now: str) -> FrameEntries:
        return FrameEntries(self.frame.where((F.col("kind") == Carried.PARKED) & (F.col("since") == now)))

    def unrepresentable(self, images: ImageColumns, tables: TargetTables) -> dict[RecordKey, str]:
        return unrepresentable_records(self.frame, images, tables)


@dataclass(frozen=True)
class MarkedFrame:
    """``frame`` also has ``k``, ``tied`` and ``settles``."""

    frame: DataFrame

    def contexts(self, marks: Collection[Mark], doubly_held: bool) -> list[MarkContext]:
        mark_rows = small_frame(self.frame.sparkSession, marks, text_schema("k", "mark", "tx"))
        order, after_mark = F.col("order_key"), F.col("order_key") >= F.col("mark")
        same = F.coalesce(F.col("tx_id") == F.col("tx"), F.lit(False))  # a source without transactions has no id
        may_settle = ~same if doubly_held else F.lit(True)
        rows = (
            self.frame.join(mark_rows, "k")
            .groupBy("k", "mark", "tx")
            .agg(
                F.min(F.when(F.col("settles") & after_mark & may_settle, order)).alias("settled"),
                F.min(F.when(F.col("tied") & after_mark, order)).alias("tied"),
                F.min(F.when(same, order)).alias("begun"),
            )
            .collect()
        )
        return [
            MarkContext(Mark(row["k"], row["mark"], row["tx"]), row["settled"], row["tied"], row["begun"])
            for row in rows
        ]

    def linked_halves(self, cuts: Mapping[str, str]) -> list[Mark]:
        waiting_keys = small_frame(self.frame.sparkSession, cuts.items(), text_schema("k", "cut"))
        halves = self.frame.where("tied").select("k", "order_key", "tx_id", "link_id").join(waiting_keys, "k", "left")
        waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
        links = halves.where(waits).select("link_id").distinct()
        rows = halves.where(~waits).join(links, "link_id", "left_semi").distinct().collect()
        return [Mark(row["k"], row["order_key"], row["tx_id"]) for row in rows]

    def without_updates_in(self, spans: Sequence[Span]) -> tuple[MarkedFrame, int]:
        span_rows = small_frame(self.frame.sparkSession, spans, text_schema("k", "span_after", "span_before"))
        inside = F.col("order_key") > F.col("span_after")
        inside = inside & F.coalesce(F.col("order_key") < F.col("span_before"), F.lit(True))
        joined = self.frame.join(span_rows, "k", "left")
        orphan = F.coalesce(inside & F.col("kind").isNull() & is_incomplete(), F.lit(False))
        kept = joined.where(~orphan).drop("span_after", "span_before")
        return MarkedFrame(kept), joined.where(orphan).count()

    def split(self, cuts: Mapping[str, str], now: str) -> Split[FrameEntries]:
        cut_rows = small_frame(self.frame.sparkSession, cuts.items(), text_schema("k", "cut"))
        joined = self.frame.join(cut_rows, "k", "left")
        waits = F.coalesce(F.col("order_key") >= F.col("cut"), F.lit(False))
        waiting = joined.where(waits).withColumns(
            {"kind": F.coalesce("kind", F.lit(Carried.PARKED)), "since": F.coalesce("since", F.lit(now))}
        )
        applied = joined.where(~waits & F.col("kind").isNull())
        return Split(
            FrameEntries(applied.select(*FIELDS, *CARRY_COLUMNS)),
            FrameEntries(waiting.dropDuplicates(["k", "order_key"]).select(*FIELDS, *CARRY_COLUMNS)),
        )


def _without_updates_of_missing_rows(entries: DataFrame, deleted: Iterable[str | None]) -> DataFrame:
    keys = small_frame(entries.sparkSession, ((key,) for key in deleted), text_schema("deleted"))
    joined = entries.join(keys, key_column() == F.col("deleted"), "left")
    partial = _is_partial_update()
    complete = joined.where(F.col("deleted").isNotNull() & ~partial)
    arrivals = complete.groupBy("deleted").agg(F.min("order_key").alias("born"))
    orphan = F.col("deleted").isNotNull() & partial & F.coalesce(F.col("order_key") < F.col("born"), F.lit(True))
    return joined.join(arrivals, "deleted", "left").where(~orphan).drop("deleted", "born")


def _is_partial_update() -> SparkColumn:
    return (F.col("op") == Operation.UPDATE.value) & is_incomplete()

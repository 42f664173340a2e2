"""Which row holds a key at the end of a transaction in which two rows held it for a while.

A swap by one statement departs from a key after another row has arrived there: the last entry of the key is a
departure, and yet a row stays. Where the last entry is anything else it is right, so only such keys of such
transactions are looked at. Rows are told apart by their whole images, whose equal copies are interchangeable, else by
the row ids of the source.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.table.merge_plan import AMBIGUOUS_KEY

DELETE = Operation.DELETE.value


def settled(entries: DataFrame) -> DataFrame:
    """Entries (change records with their key as ``k``) of which the last one of a key is what its transaction left.

    Left out are departures behind the arrival of the row that stays, and everything of rows that only passed by. Where
    a departure says neither image nor row id, it is taken for what it seems to be. Raises the word AMBIGUOUS_KEY where
    two rows stay, or a departure that is left out takes columns along that nobody else knows.
    """
    doubtful = _doubtful(entries).localCheckpoint()
    outcomes = _outcomes(entries.join(doubtful, ["tx_id", "k"]))
    told = entries.join(outcomes, ["tx_id", "k"], "left")
    left_out = F.coalesce(F.col("passed") | (F.col("order_key") > F.col("arrived_at")), F.lit(False))
    taken_along = F.col("carries").isNotNull() & F.coalesce(F.col("phase") == DEPARTS, F.lit(False))
    kept = F.when(left_out & taken_along, F.raise_error(F.lit(AMBIGUOUS_KEY)).cast("boolean")).otherwise(~left_out)
    return told.where(kept).drop(*(name for name in outcomes.columns if name not in ("tx_id", "k")))


def _doubtful(entries: DataFrame) -> DataFrame:
    """Keys of transactions that a row arrived at and that end with a departure, where rows can be told apart.

    ``by_id``: by row ids only. ``carries``: some row of the transaction brings unknown columns along from another key.
    """
    whole = F.when(F.col("op") == DELETE, F.col("before_complete")).otherwise(
        F.col("after_complete") & (~_in_place() | F.col("before_complete"))
    )
    carried = entries.where((F.col("phase") == ARRIVES) & ~F.col("after_complete")).select("tx_id").distinct()
    return (
        entries.groupBy("tx_id", "k")
        .agg(
            F.max_by("op", "order_key").alias("last_op"),
            F.bool_or(F.col("op") != DELETE).alias("arrived"),
            (~F.bool_and(whole)).alias("by_id"),
            F.bool_and(F.col("row_id").isNotNull()).alias("ids"),
        )
        .where((F.col("last_op") == DELETE) & F.col("arrived") & (~F.col("by_id") | F.col("ids")))
        .select("tx_id", "k", "by_id")
        .join(carried.withColumn("carries", F.lit(True)), "tx_id", "left")
    )


def _outcomes(entries: DataFrame) -> DataFrame:
    """Per doubtful key: where the row that stays arrived (``arrived_at``, NULL where none stays), and whether there are
    only rows that came and went (``passed``)."""
    at = F.struct("order_key", "n")
    rows = (
        _moves(entries)
        .groupBy("tx_id", "k", "by_id", "carries", "row")
        .agg(
            F.sum("n").alias("net"),
            F.min_by("n", at).alias("first"),
            F.max_by("n", at).alias("last"),
            F.max(F.when(F.col("n") > 0, F.col("order_key"))).alias("arrival"),
        )
    )
    stays = F.when(F.col("by_id"), F.col("last") > 0).otherwise(F.col("net") > 0)
    leaves = F.when(F.col("by_id"), (F.col("first") < 0) & (F.col("last") < 0)).otherwise(F.col("net") < 0)
    one = F.when(F.count_if(stays) > 1, F.raise_error(F.lit(AMBIGUOUS_KEY)).cast("string")).otherwise(
        F.max(F.when(stays, F.col("arrival")))
    )
    return rows.groupBy("tx_id", "k", "carries").agg(
        one.alias("arrived_at"), (F.count_if(stays | leaves) == 0).alias("passed")
    )


def _moves(entries: DataFrame) -> DataFrame:
    """One row per row that comes to hold a key (``n`` 1) or leaves it (-1); a change in place is both."""
    goes, comes = _side("before", -1), _side("after", 1)
    sides = (
        F.when(F.col("op") == DELETE, F.array(goes)).when(_in_place(), F.array(goes, comes)).otherwise(F.array(comes))
    )
    exploded = entries.select("tx_id", "k", "by_id", "carries", "order_key", F.explode(sides).alias("side"))
    return exploded.select("tx_id", "k", "by_id", "carries", "order_key", "side.*")


def _in_place() -> Column:
    return (F.col("op") != DELETE) & F.col("key").eqNullSafe(F.col("key_before"))


def _side(image: str, n: int) -> Column:
    row = F.when(F.col("by_id"), F.col("row_id")).otherwise(F.col(image))
    return F.struct(row.alias("row"), F.lit(n).alias("n"))

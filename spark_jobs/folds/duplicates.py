"""Changes that come again. They are as they were; where one place of a row has two stories, no order tells which is
true."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import WindowSpec
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import CONFLICTING_CHANGES

READ = Operation.READ.value


def change_signature() -> SparkColumn:
    """What a change record says, as a number. Rows that a copy met are taken as they come: it may have begun anew while
    the source's log stood where it was."""
    return F.when(F.col("op") == READ, 0).otherwise(F.xxhash64("op", "after"))


def last_signatures() -> list[SparkColumn]:
    """Aggregates over the entries of a key, for ``without_duplicates``."""
    most = F.max(F.struct("order_key", change_signature().alias("story")))
    least = F.max(F.struct("order_key", F.bitwise_not(change_signature()).alias("story")))
    return [most.alias("most"), least.alias("least")]


def without_duplicates(text: SparkColumn) -> SparkColumn:
    """``text`` where the last place of a key has one story. Else the row cannot be read."""
    return _unless(F.col("most.story") != F.bitwise_not(F.col("least.story")), text, "string")


def is_repeated(by_order: WindowSpec) -> SparkColumn:
    """No entry before says the same. Where one at the same place says something else, the entry cannot be read."""
    again = F.coalesce(F.lag("order_key").over(by_order) == F.col("order_key"), F.lit(False))
    return _unless(again & (F.lag(change_signature()).over(by_order) != change_signature()), ~again, "boolean")


def _unless(differ: SparkColumn, value: SparkColumn, kind: str) -> SparkColumn:
    return F.when(differ, F.raise_error(F.lit(CONFLICTING_CHANGES)).cast(kind)).otherwise(value)


def differ(some: pa.Table, others: pa.Table) -> bool:
    """Whether a record says something else than the one in its place among the others."""
    kinds = pc.not_equal(some["op"], others["op"])
    images = pc.not_equal(pc.fill_null(some["after"], ""), pc.fill_null(others["after"], ""))
    return bool(pc.any(pc.and_(pc.or_(kinds, images), pc.not_equal(some["op"], READ))).as_py())

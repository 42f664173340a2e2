"""Duplicate deliveries. A duplicate is identical to the original; two records with one key and one order key but
different contents have no defined order.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.merge_plan import CONFLICTING_CHANGES

READ = Operation.READ.value


def change_signature() -> SparkColumn:
    """A hash of the contents of a change record. Rows of a copy (``read``) all have the signature 0: a copy may have
    restarted at the same log position and read newer values."""
    return F.when(F.col("op") == READ, 0).otherwise(F.xxhash64("op", "after"))


def last_signatures() -> list[SparkColumn]:
    """Aggregates over the entries of a key, for ``without_duplicates``."""
    most = F.max(F.struct("order_key", change_signature().alias("signature")))
    least = F.max(F.struct("order_key", F.bitwise_not(change_signature()).alias("signature")))
    return [most.alias("most"), least.alias("least")]


def without_duplicates(text: SparkColumn) -> SparkColumn:
    """``text`` where all entries at the last order key of a key have the same signature; otherwise the query fails."""
    conflict = F.col("most.signature") != F.bitwise_not(F.col("least.signature"))
    return F.when(conflict, F.raise_error(F.lit(CONFLICTING_CHANGES)).cast("string")).otherwise(text)


def have_conflicts(records: pa.Table, others: pa.Table) -> bool:
    """Whether a record differs from the one at the same index of ``others``."""
    operations_differ = pc.not_equal(records["op"], others["op"])
    images_differ = pc.not_equal(pc.fill_null(records["after"], ""), pc.fill_null(others["after"], ""))
    return bool(pc.any(pc.and_(pc.or_(operations_differ, images_differ), pc.not_equal(records["op"], READ))).as_py())

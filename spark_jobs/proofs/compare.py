"""The comparison of one table at one position.

Both sides sum up hashes per interval of the key. Intervals that differ are divided until few rows are left; of these,
and no others, the hashes are read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import functions as F

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.proof.differences import KEY_SEPARATOR, RowDifference, row_differences
from airflow_cdc_provider.core.proof.drill_down import DrillDown, drill_down
from airflow_cdc_provider.core.proof.key_intervals import WHOLE, KeyInterval
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.proofs.source_side import SourceSide
from spark_jobs.proofs.target_side import Surplus, TargetSide
from spark_jobs.runtime.console import log_line

DIFFERENCES_SHOWN = 20
DIFFERENCES_READ = 10_000
"""More are not listed, and not repaired: another copy of the table is cheaper."""


@dataclass(frozen=True)
class Comparison:
    """``columns``: whether each one is equal. ``differences``: the first ones by key, ``more`` if there are others.
    ``rows_read``: how many rows, or their hashes, were read from the source."""

    found: DrillDown
    identical: bool
    columns: dict[str, bool]
    differences: tuple[RowDifference, ...] = ()
    more: bool = False
    rows_read: int = 0

    @property
    def intervals(self) -> tuple[KeyInterval, ...]:
        """Those with differences, in the order of their keys."""
        return tuple(interval for interval, _ in self.found.differing)

    @property
    def keys(self) -> list[str]:
        """The texts of the keys that differ, each once."""
        return list(dict.fromkeys(difference.key for difference in self.differences))

    def detail(self, exact: bool) -> dict[str, Any]:
        """The content of ``TableResult.detail``. ``inexact``: the source may have changed during the read, so a
        difference is significant only without concurrent writes."""
        return {
            "source_rows": self.found.source.rows,
            "target_rows": self.found.target.rows,
            "identical": self.identical,
            "columns": self.columns,
            "differing": len(self.keys),
            "more": self.more,
            "differences": [key.replace(KEY_SEPARATOR, ", ") for key in self.keys[:DIFFERENCES_SHOWN]],
            "inexact": not exact,
            "intervals": self.found.summed,
            "rows_read": self.rows_read,
        }


def compared_columns(copy: Copy, rewritten: Collection[str]) -> TableSchema:
    """The columns that can be compared: columns that the stream does not carry have the values of the last copy.
    ``rewritten``: those whose texts change in the target."""
    without = {*copy.unlogged, *rewritten}
    return replace(copy.schema, columns=tuple(column for column in copy.schema.columns if column.name not in without))


def compare(source: SourceSide, target: TargetSide, within: KeyInterval = WHOLE) -> Comparison:
    """The rows in the interval. Equal rows of a table without a key are counted."""
    found, schema = drill_down(source, target, source.rows, within), target.schema
    sums = zip(found.source.columns, found.target.columns, strict=True)
    columns = dict(zip(schema.names, (one == other for one, other in sums), strict=True))
    differences: list[RowDifference] = []
    if found.differing:
        log_line(f"{schema.table}: {len(found.differing):,} of {found.summed:,} intervals of the key differ")
        differences = _differences(source, target, [interval for interval, _ in found.differing])
    return Comparison(
        found,
        identical=not found.differing or (target.surplus is not Surplus.NEITHER and not differences),
        columns=columns if target.surplus is Surplus.NEITHER else {},
        differences=tuple(differences[:DIFFERENCES_READ]),
        more=len(differences) > DIFFERENCES_READ,
        rows_read=found.source.rows if source.reads_all else found.rows,
    )


def _differences(source: SourceSide, target: TargetSide, intervals: Sequence[KeyInterval]) -> list[RowDifference]:
    """The first rows that only one side has, or that differ."""
    sides = [side.hashes(intervals).select("k", "h", F.lit(n).alias("n")) for side, n in ((source, 1), (target, -1))]
    grouped = sides[0].unionByName(sides[1]).groupBy("k", "h").agg(F.sum("n").alias("n"))
    differing = grouped.where(f"n {target.surplus.value} 0")
    rows = differing.orderBy("k").limit(2 * DIFFERENCES_READ + 1).collect()
    return row_differences((row["k"], row["h"], row["n"]) for row in rows)

"""How long a first copy takes, from statistics and from earlier copies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult
from airflow_cdc_provider.core.table.table_size import TableSize

COPIES = frozenset({StepKind.SNAPSHOT, StepKind.RESYNC})
COPY_PHASES = ("read", "copy")
LEAST_ROWS = 10_000
"""The time of a smaller copy is that of its commit."""


@dataclass(frozen=True)
class CopyRate:
    """What one copy reads and writes in a second; the slower of the two rates limits it. ``bytes_per_s``: as the source
    counts them, None if unknown. ``copies``: the number of earlier copies that were measured; 0 for a default."""

    rows_per_s: float
    bytes_per_s: float | None = None
    copies: int = 0


DEFAULT_RATES: Mapping[str, CopyRate] = {
    "postgres": CopyRate(56_000, 11.5e6),
    "mysql": CopyRate(6_000, 1.1e6),
}
"""By source type: of a table of twelve columns, into Delta Lake, on two cores that the database and other programs used
as well. Other sources have none: no copy of theirs was measured."""


def measured_rate(results: Iterable[StepResult]) -> CopyRate | None:
    """The rate of earlier copies, weighted by their time. None if there was none of ``LEAST_ROWS`` rows."""
    copies = [
        (table.rows, sum(table.phases.get(phase, 0.0) for phase in COPY_PHASES))
        for result in results
        if result.kind in COPIES
        for table in result.tables
        if table.outcome is Outcome.DONE and table.rows >= LEAST_ROWS
    ]
    seconds = sum(took for _, took in copies)
    return CopyRate(sum(rows for rows, _ in copies) / seconds, copies=len(copies)) if seconds else None


def copy_seconds(size: TableSize, rate: CopyRate | None) -> float | None:
    """None if neither rows nor bytes are known, or no rate."""
    if rate is None:
        return None
    by_rows = None if size.rows is None else size.rows / rate.rows_per_s
    by_bytes = None if size.bytes is None or rate.bytes_per_s is None else size.bytes / rate.bytes_per_s
    known = [seconds for seconds in (by_rows, by_bytes) if seconds is not None]
    return round(max(known), 1) if known else None

"""How far a full copy is: for the task log, and in a file of staging for ``status``."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.log.change_log import table_folder


@dataclass(frozen=True)
class Progress:
    """``of`` is the estimated total of rows, None where it is unknown. ``fraction`` (0 to 1) is set where the progress
    is measured by something other than rows."""

    rows: int
    of: int | None = None
    fraction: float | None = None

    @property
    def done(self) -> float | None:
        """0 to 1; None where the total is unknown."""
        if self.fraction is None and self.of:
            return min(self.rows / self.of, 1.0)
        return self.fraction


@dataclass(frozen=True)
class CopyProgress:
    """The progress of the copy that ``run_id`` makes, ``seconds`` after it has begun to read. ``at``: UTC in ISO 8601
    format."""

    run_id: str
    at: str
    seconds: float
    progress: Progress

    @property
    def seconds_left(self) -> float | None:
        done = self.progress.done
        return self.seconds * (1 - done) / done if done else None

    def __str__(self) -> str:
        return format_progress(self.progress, self.seconds)


def format_progress(progress: Progress, seconds: float) -> str:
    """``1,200,000 rows, 400,000 rows/s, 60 % done, 2 s left``."""
    parts = [f"{progress.rows:,} rows", f"{progress.rows / max(seconds, 0.001):,.0f} rows/s"]
    if done := progress.done:
        parts += [f"{done:.0%} done", f"{seconds * (1 - done) / done:,.0f} s left"]
    return ", ".join(parts)


def copy_folder(table: str) -> str:
    """What belongs to the copy of a table that is being made."""
    return f"copies/{table_folder(table)}"


def progress_path(table: str) -> str:
    return f"{copy_folder(table)}/progress.json"

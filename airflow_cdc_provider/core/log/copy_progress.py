"""How far a full copy is: for the task log, and in a file of staging for ``status``."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.log.change_log import table_folder


@dataclass(frozen=True)
class Progress:
    """``of`` is the estimated total of rows, None where it is unknown. ``fraction`` (0 to 1) is set where the progress
    is measured by something other than rows. ``kept``: those of ``rows`` that an earlier attempt has read."""

    rows: int
    of: int | None = None
    fraction: float | None = None
    kept: int = 0

    @property
    def done(self) -> float | None:
        """0 to 1; None where the total is unknown."""
        if self.fraction is None and self.of:
            return min(self.rows / self.of, 1.0)
        return self.fraction

    def seconds_left(self, seconds: float) -> float | None:
        """From the rate of the first ``seconds``; None where it is unknown."""
        if self.fraction is not None:
            return seconds * (1 - self.fraction) / self.fraction if self.fraction else None
        read = self.rows - self.kept
        return seconds * max(self.of - self.rows, 0) / read if self.of and read > 0 else None


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
        return self.progress.seconds_left(self.seconds)

    def __str__(self) -> str:
        return format_progress(self.progress, self.seconds)


def format_progress(progress: Progress, seconds: float) -> str:
    """``1,200,000 rows, 400,000 rows/s, 60 % done, 2 s left``."""
    parts = [f"{progress.rows:,} rows", f"{(progress.rows - progress.kept) / max(seconds, 0.001):,.0f} rows/s"]
    parts += [f"{done:.0%} done"] if (done := progress.done) else []
    left = progress.seconds_left(seconds)
    return ", ".join(parts if left is None else [*parts, f"{left:,.0f} s left"])


COPIES = "copies"


def copy_folder(table: str) -> str:
    """What belongs to the copy of a table that is being made."""
    return f"{COPIES}/{table_folder(table)}"


def progress_path(table: str) -> str:
    return f"{copy_folder(table)}/progress.json"


def paused_path(table: str) -> str:
    """The state of a table whose first copy an operator has paused."""
    return f"{copy_folder(table)}/paused.json"


def blocked_path(table: str) -> str:
    """The state of a table whose first copy a step has blocked."""
    return f"{copy_folder(table)}/blocked.json"

"""The end of the read of a copy that is not exact: from which window on it is consistent."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.connectors.source_features import CapturesLater
from spark_jobs.runtime.job import Job, TableWork


@dataclass(frozen=True)
class ReadEnd:
    """All rows of a copy have been read. ``high``: the first window that can only have begun after that."""

    high: int


def end_of_read(job: Job, work: TableWork) -> ReadEnd:
    """Call it when all rows have been read, and none will be read again. A source whose stream lags behind its tables
    catches up with them. The first window that has not begun yet is the one after the next."""
    if isinstance(job.source, CapturesLater):
        with work.phase("capture"):
            job.source.wait_for_capture()
    return ReadEnd(job.log.sealed() + 2)

"""Single statements: each is a job that commits by itself."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.targets.bigquery.jobs import Jobs, rows_of
from airflow_cdc_provider.targets.bigquery.scripts import with_values


@dataclass
class JobCursor:
    """The part of a DB-API cursor that the common code of databases uses. ``described``: what the API answered last
    about tables, by name; None for one that is not there."""

    jobs: Jobs
    rowcount: int = -1
    described: dict[str, Any | None] = field(default_factory=dict)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)

    def execute(self, text: str, parameters: Sequence[Any] | None = None) -> None:
        job = self.jobs.query(with_values(text, parameters or ()), f"cdc-{uuid.uuid4().hex}")
        changed = job.num_dml_affected_rows
        self.rowcount = -1 if changed is None else changed
        self._rows = list(rows_of(job)) if job.statement_type == "SELECT" else []

    def fetchone(self) -> tuple[Any, ...] | None:
        with contextlib.suppress(IndexError):
            return self._rows.pop(0)
        return None

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows, []
        return rows


@dataclass(frozen=True)
class JobConnection:
    jobs: Jobs

    def cursor(self) -> JobCursor:
        return JobCursor(self.jobs)

    def commit(self) -> None:
        """Each statement has committed by itself."""

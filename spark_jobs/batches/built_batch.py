"""The result of a fold."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import Batch
from airflow_cdc_provider.core.errors import Problem


@dataclass(frozen=True)
class BuiltBatch:
    """``problem``: why some rows are left to the next run."""

    batch: Batch
    problem: Problem | None = None

"""Which tables the window of another active run leaves out. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import TableTask


@dataclass(frozen=True)
class RunBeside:
    """The other run that holds the stream lane. ``plan``: None if it has not decided yet."""

    run_id: str
    plan: RunPlan | None

    def misses(self, task: TableTask, sealed: int) -> bool:
        """Whether it may seal a window after ``sealed`` without the table, or with records that other settings of the
        table select."""
        if self.plan is None:
            return True
        if not self.plan.extract or self.plan.sealed < sealed:
            return False
        return not any(_same_records(task, other) for other in self.plan.tables)


def _same_records(one: TableTask, other: TableTask) -> bool:
    unknown = not one.log_sha256 or not other.log_sha256
    return one.source_table == other.source_table and (unknown or one.log_sha256 == other.log_sha256)

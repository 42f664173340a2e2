"""Which tables the window of another active run leaves out. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import TableTask


@dataclass(frozen=True)
class RunBeside:
    """The other run that holds the stream lane. ``plan``: None if it has not decided yet. ``has_sealed``: its step
    that seals windows has ended. Until then another window may follow: an extract seals several after a hole, and a
    comparison one for each table."""

    run_id: str
    plan: RunPlan | None
    has_sealed: bool = False

    def misses(self, task: TableTask) -> bool:
        """Whether it may seal another window without the table, or with records that other settings of the table
        select."""
        if self.plan is None:
            return True
        if self.has_sealed or not self.plan.sealing_task:
            return False
        return not any(_same_records(task, other) for other in self.plan.tables)


def _same_records(one: TableTask, other: TableTask) -> bool:
    unknown = not one.log_sha256 or not other.log_sha256
    return one.source_table == other.source_table and (unknown or one.log_sha256 == other.log_sha256)

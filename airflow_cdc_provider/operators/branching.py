"""Taking some roads of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.branch import BranchMixIn
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import DownstreamTasksSkipped

if TYPE_CHECKING:
    from airflow.sdk import Context


class BranchingTask(BaseOperator, BranchMixIn):
    """A task that decides which of the tasks behind it run."""

    inherits_from_skipmixin = True

    def follow_branches(self, context: Context, roads: Sequence[str]) -> None:
        """Let only these tasks, directly behind this one, and what follows them run. To be called last.

        Everything else behind this task is skipped at once. Airflow itself would skip the nearest tasks only and leave
        the next generation to each next turn of the scheduler, seconds apart.
        """
        try:
            self.do_branch(context, list(roads))
        except DownstreamTasksSkipped as nearest:
            reached = set(roads).union(*(self.dag.get_task(road).get_flat_relative_ids() for road in roads))
            beyond = self.get_flat_relative_ids() - reached
            raise DownstreamTasksSkipped(tasks=[*nearest.tasks, *sorted(beyond)]) from None  # type: ignore[no-untyped-call]

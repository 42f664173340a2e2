"""Base of the operators that choose the branches of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.branch import BranchMixIn
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import DownstreamTasksSkipped

if TYPE_CHECKING:
    from airflow.sdk import Context


class BranchingTask(BaseOperator, BranchMixIn):
    """An operator that decides which of its downstream tasks run."""

    inherits_from_skipmixin = True

    def follow_branches(self, context: Context, branches: Sequence[str]) -> None:
        """Follow only these direct downstream tasks, and skip all other downstream tasks at once. Call it last.

        Airflow itself skips only the direct downstream tasks; each further level takes another scheduler loop.
        """
        try:
            self.do_branch(context, list(branches))
        except DownstreamTasksSkipped as skipped:
            reached = set(branches).union(*(self.dag.get_task(branch).get_flat_relative_ids() for branch in branches))
            unreachable = self.get_flat_relative_ids() - reached
            raise DownstreamTasksSkipped(tasks=[*skipped.tasks, *sorted(unreachable)]) from None  # type: ignore[no-untyped-call]

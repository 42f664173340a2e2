"""Runs in which the process of a task dies."""

from __future__ import annotations

from typing import Any

from tests.faults.dag_run import DagRun


class Killed(BaseException):
    """The process of a task ends here."""


class KilledRun(DagRun):
    """Airflow sees a task whose process died as one that failed, and tries it again."""

    def _try(self, task: str, attempt: Any, arguments: Any, injection: Any) -> Any:
        def in_process(number: int) -> Any:
            try:
                return attempt(number)
            except Killed as killed:
                raise RuntimeError(f"the process of {task} died") from killed

        return super()._try(task, in_process, arguments, injection)

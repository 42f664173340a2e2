"""Files that the tasks of one DAG run exchange: the run plan, and per submission a folder with step and result.

steps/<run>/plan.json                               written by open_window
steps/<run>/holes.json                              tables that reached a hole in this run, written by find_holes
steps/<run>/<task>/<try>/submission.json            origin of the attempt; its exclusive creation claims the folder
steps/<run>/<task>/<try>/{step,driver,result}.json  input, process and output of the job
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from airflow_cdc_provider.core.decisions.attempts import Submission
from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.decisions.steps import Step, StepResult
from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log import change_log
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.staging.store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class StepFolder:
    """One submission. ``path`` is relative to the replicator's staging folder. A missing file is read as None."""

    store: Store
    path: str

    @property
    def url(self) -> str:
        return self.store.url(self.path)

    @property
    def step_url(self) -> str:
        """The only argument of the job."""
        return self.store.url(f"{self.path}/step.json")

    def claim(self, submission: Submission) -> bool:
        """False if another attempt has claimed this folder."""
        return self.store.create(f"{self.path}/submission.json", _encoded(submission))

    def submission(self) -> Submission | None:
        return self._read("submission.json", Submission)

    def write_step(self, step: Step) -> None:
        self.store.write(f"{self.path}/step.json", _encoded(step))

    def step(self) -> Step | None:
        return self._read("step.json", Step)

    def write_result(self, result: StepResult) -> None:
        self.store.write(f"{self.path}/result.json", _encoded(result))

    def result(self) -> StepResult | None:
        return self._read("result.json", StepResult)

    def _read(self, name: str, kind: type[T]) -> T | None:
        path = f"{self.path}/{name}"
        try:
            content = self.store.read(path)
        except FileNotFoundError:
            return None
        return from_plain(kind, json.loads(content))


@dataclass(frozen=True)
class FoundHoles:
    """The content of ``holes.json``. Before openings had an id, it was only the list of tables."""

    opening: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class RunFiles:
    store: Store
    run_id: str

    def write_plan(self, plan: RunPlan) -> None:
        self.store.write(change_log.run_plan_path(self.run_id), _encoded(plan))

    def plan(self) -> RunPlan:
        """Raises StagingInvalid (STG006) if the run has no plan."""
        path = change_log.run_plan_path(self.run_id)
        try:
            return from_plain(RunPlan, json.loads(self.store.read(path)))
        except FileNotFoundError:
            raise StagingInvalid.of(
                "STG006",
                "this run has no plan",
                where=self.store.url(path),
                do="clear open_window of this run, or wait for the next run",
                data="nothing was read or written",
            ) from None

    def write_holes(self, opening: str, tables: tuple[str, ...]) -> None:
        self.store.write(self._holes, _encoded(FoundHoles(opening, tables)))

    def holes(self, opening: str) -> tuple[str, ...]:
        """Those that were found since this opening of the run."""
        if not self.store.exists(self._holes):
            return ()
        body = json.loads(self.store.read(self._holes))
        found = FoundHoles("", tuple(body)) if isinstance(body, list) else from_plain(FoundHoles, body)
        return found.tables if found.opening == opening else ()

    def folder(self, task_id: str, number: int) -> StepFolder:
        return StepFolder(self.store, change_log.step_folder(self.run_id, task_id, number))

    def submissions(self, task_id: str) -> list[StepFolder]:
        """All submissions of a task in all openings of this run, newest first."""
        names = self.store.names(f"{change_log.STEPS}/{quote(self.run_id, safe='')}/{task_id}")
        return [self.folder(task_id, number) for number in sorted(map(int, names), reverse=True)]

    def of_opening(self, task_id: str, opening: str) -> Iterator[tuple[Step, StepResult | None]]:
        """Step and result of each submission of a task since this opening of the run, newest first."""
        for folder in self.submissions(task_id):
            step = folder.step()
            if step is not None and step.opening == opening:
                yield step, folder.result()

    def latest(self, task_id: str, opening: str) -> tuple[Step, StepResult] | None:
        """Step and result of the newest submission with a result."""
        submissions = self.of_opening(task_id, opening)
        return next(((step, result) for step, result in submissions if result is not None), None)

    @property
    def _holes(self) -> str:
        return change_log.run_plan_path(self.run_id).replace("plan.json", "holes.json")


def _encoded(value: Any) -> bytes:
    plain = to_plain(value)
    if isinstance(plain, dict):
        plain = {"format": change_log.FORMAT, **plain}
    return json.dumps(plain, ensure_ascii=False, indent=1).encode()

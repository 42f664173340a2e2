"""Files that the tasks of one DAG run exchange: the run plan, and per submission a folder with step and result.

Of a run's folder, steps/owner=<state store>/<run>:

plan.json                               written by open_window
decision.json                           what it decided, written after the plan
holes.json                              tables that reached a hole in this run, written by find_holes
<task>/<try>/submission.json            origin of the attempt; its exclusive creation claims the folder
<task>/<try>/{step,driver,result}.json  input, process and output of the job

Before there was a folder per state store, the folder of a run was steps/<run>.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

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
    """``path``: of the run's folder, relative to the replicator's staging folder."""

    store: Store
    run_id: str
    path: str

    def write_plan(self, plan: RunPlan) -> None:
        self.store.write(self._plan, _encoded(plan))

    def plan(self) -> RunPlan:
        """Raises StagingInvalid (STG006) if the run has no plan."""
        try:
            return from_plain(RunPlan, json.loads(self.store.read(self._plan)))
        except FileNotFoundError:
            raise StagingInvalid.of(
                "STG006",
                "this run has no plan",
                where=self.store.url(self._plan),
                do="clear open_window of this run, or wait for the next run",
                data="nothing was read or written",
            ) from None

    def has_plan(self) -> bool:
        return self.store.exists(self._plan)

    def is_of(self, owner: str) -> bool:
        """Whether a run of this state store wrote the plan."""
        return self.has_plan() and json.loads(self.store.read(self._plan)).get("owner") == owner

    def write_decision(self, decision: dict[str, Any]) -> None:
        self.store.write(self._decision, json.dumps(decision, ensure_ascii=False).encode())

    def decision(self) -> dict[str, Any] | None:
        if not self.store.exists(self._decision):
            return None
        body: dict[str, Any] = json.loads(self.store.read(self._decision))
        return body

    def delete_decision(self) -> None:
        self.store.delete(self._decision)

    def delete(self) -> None:
        self.store.delete(self.path)

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
        return StepFolder(self.store, f"{self.path}/{task_id}/{number}")

    def submissions(self, task_id: str) -> list[StepFolder]:
        """All submissions of a task in all openings of this run, newest first."""
        names = self.store.names(f"{self.path}/{task_id}")
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
    def _plan(self) -> str:
        return f"{self.path}/plan.json"

    @property
    def _decision(self) -> str:
        return f"{self.path}/decision.json"

    @property
    def _holes(self) -> str:
        return f"{self.path}/holes.json"


def own_run(store: Store, owner: str, run_id: str) -> RunFiles:
    """The folder in which a run of this state store is opened."""
    return RunFiles(store, run_id, change_log.run_folder(change_log.runs_folder(owner), run_id))


def find_run(store: Store, owner: str, run_id: str) -> RunFiles:
    """The folder in which a run of this state store was opened. A run from before there was a folder per state store
    stays in its own, until it is opened again."""
    own = own_run(store, owner, run_id)
    if own.has_plan():
        return own
    former = RunFiles(store, run_id, change_log.run_folder(change_log.STEPS, run_id))
    return former if former.is_of(owner) else own


def all_runs(store: Store) -> list[list[RunFiles]]:
    """By state store, and those from before there was a folder per state store, in the order of their ids."""
    names = store.names(change_log.STEPS)
    owned = [name for name in names if name.startswith(change_log.OWNER)]
    folders = [(f"{change_log.STEPS}/{name}", store.names(f"{change_log.STEPS}/{name}")) for name in owned]
    folders.append((change_log.STEPS, [name for name in names if name not in owned]))
    return [[RunFiles(store, unquote(name), f"{folder}/{name}") for name in runs] for folder, runs in folders]


def _encoded(value: Any) -> bytes:
    plain = to_plain(value)
    if isinstance(plain, dict):
        plain = {"format": change_log.FORMAT, **plain}
    return json.dumps(plain, ensure_ascii=False, indent=1).encode()

"""Attempts that came before ours: a killed task leaves its Spark driver behind, and that driver may still write.

What can be reached on this worker is killed. Of the rest, those that write to target tables are shut out by raising the
fence in the target; those that do not may finish, nobody reads what they leave.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.attempts import WRITES, conflicting_tables
from airflow_cdc_provider.core.decisions.steps import StepKind, TableTask
from airflow_cdc_provider.hooks import drivers, secrets
from airflow_cdc_provider.staging.run_files import RunFiles, StepFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StaleAttempt:
    """An earlier attempt over some of our tables. ``ended``: its driver is gone, it can write no more."""

    folder: StepFolder
    attempt: str
    kind: str
    tables: frozenset[str]
    ended: bool

    @property
    def may_write(self) -> bool:
        return not self.ended and self.kind in WRITES


def end_stale_attempts(
    kind: StepKind, tables: Iterable[TableTask], task_id: str, run: RunFiles, replicator: Replicator
) -> list[StaleAttempt]:
    """Find the rivals of a step, kill what runs on this worker, and close in the state store those that have ended.

    They are known from the state store, from the folders of this task in this run, and from the command lines of this
    worker's processes: each finds some that the others do not know.
    """
    ours = frozenset(task.table for task in tables)
    found = []
    for folder, attempt, their_kind, their_tables in _earlier(task_id, run, replicator):
        common = conflicting_tables(kind, ours, their_kind, their_tables)
        if not common:
            continue
        ended = _end(folder)
        if ended:
            replicator.state.close_attempt(attempt, "ended")
        found.append(StaleAttempt(folder, attempt, their_kind, common, ended))
    return found


def raise_fences(
    found: Iterable[StaleAttempt], tables: Iterable[TableTask], by: str, replicator: Replicator
) -> frozenset[str]:
    """Shut out every rival that may still write. Returns the tables fenced: what was staged for them is void.

    A table that is not in the target yet has no fence to raise: there the rivals meet at the table's creation. Raises
    Fenced where somebody newer than us raises fences too.
    """
    writing = [rival for rival in found if rival.may_write]
    names = frozenset[str]().union(*(rival.tables for rival in writing))
    fenced = frozenset(task.table for task in tables if task.table in names and _fence(task, by, replicator))
    for rival in writing:
        detail = {"attempt": rival.attempt, "step": rival.kind, "tables": sorted(fenced & rival.tables)}
        replicator.state.write_audit(replicator.name, by, "shut out", detail)
        replicator.state.close_attempt(rival.attempt, "shut out")
        log.warning("The end of attempt %s was not seen, its tables are fenced: %s", rival.attempt, detail)
    return fenced


def _fence(task: TableTask, by: str, replicator: Replicator) -> bool:
    held = replicator.target.state(task.table, task.target)
    if held.control is None:
        return False
    commit_fence(replicator, task.table, task.target, held, by)
    return True


def _earlier(
    task_id: str, run: RunFiles, replicator: Replicator
) -> Iterable[tuple[StepFolder, str, str, frozenset[str]]]:
    seen = set()
    for row in replicator.state.open_attempts(replicator.name):
        seen.add(row.folder)
        yield StepFolder(run.store, row.folder), row.id, row.kind, frozenset(row.tables)
    root = run.store.url("")
    urls = drivers.running(f"{root}steps/")
    here = [StepFolder(run.store, url.removeprefix(root).rpartition("/")[0]) for url in urls]
    for folder in (*run.submissions(task_id), *here):
        step = None if folder.path in seen else folder.step()
        seen.add(folder.path)
        if step is not None and (folder in here or folder.result() is None):
            yield folder, step.attempt, step.kind, frozenset(task.table for task in step.tables)


def _end(folder: StepFolder) -> bool:
    """True where the attempt's driver is known to be gone. Its secrets file goes with it."""
    gone = drivers.end(folder.step_url)
    submission = folder.submission()
    ours = submission is not None and bool(submission.place) and submission.place == drivers.process_space()
    if not gone or not (ours or folder.result() is not None):
        return False
    step = folder.step()
    if ours and step is not None:
        secrets.remove(Path(step.secrets_path))
    return True

"""Earlier attempts of a step: a killed task leaves its Spark driver running, and that driver may still write.

Drivers on this worker are killed. Of the others, those that write to target tables are fenced; those that do not may
finish, because no process reads their output.
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
from airflow_cdc_provider.core.errors import ForeignTarget
from airflow_cdc_provider.hooks import drivers, secrets
from airflow_cdc_provider.staging.run_files import RunFiles, StepFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StaleAttempt:
    """An earlier attempt at some of the step's tables. ``ended``: its driver has ended and cannot write any more."""

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
    """Find the stale attempts of a step, kill their drivers on this worker, and close the ended ones in the store.

    They are found in the state store, in the folders of this task in this run, and in the command lines of this
    worker's processes. Each of the three may list attempts that the others lack.
    """
    own_tables = frozenset(task.table for task in tables)
    stale_attempts = []
    for folder, attempt, their_kind, their_tables in _earlier_attempts(task_id, run, replicator):
        common_tables = conflicting_tables(kind, own_tables, their_kind, their_tables)
        if not common_tables:
            continue
        ended = _end_driver(folder)
        if ended:
            replicator.state.close_attempt(attempt, "ended")
        stale_attempts.append(StaleAttempt(folder, attempt, their_kind, common_tables, ended))
    return stale_attempts


def raise_fences(
    stale_attempts: Iterable[StaleAttempt], tables: Iterable[TableTask], actor: str, replicator: Replicator
) -> frozenset[str]:
    """Fence the tables of every stale attempt that may still write. Returns the fenced tables: their batches are void.

    A table that does not exist in the target yet has no fence; there the table's creation has one winner. Raises Fenced
    if a newer attempt has fenced a table meanwhile.
    """
    writers = [stale for stale in stale_attempts if stale.may_write]
    writable_tables = frozenset[str]().union(*(stale.tables for stale in writers))
    fenced = frozenset(
        task.table for task in tables if task.table in writable_tables and _fence(task, actor, replicator)
    )
    for stale in writers:
        detail = {"attempt": stale.attempt, "step": stale.kind, "tables": sorted(fenced & stale.tables)}
        replicator.state.write_audit(replicator.name, actor, "shut out", detail)
        replicator.state.close_attempt(stale.attempt, "shut out")
        log.warning("Attempt %s may still be running; fenced its tables: %s", stale.attempt, detail)
    return fenced


def _fence(task: TableTask, actor: str, replicator: Replicator) -> bool:
    current = replicator.targets.state(task.table, task.target)
    if current.control is None:
        return False
    try:
        commit_fence(replicator, task.table, task.target, current, actor)
    except ForeignTarget as error:
        log.warning("%s is not fenced: the state store that took it over has fenced it. %s", task.table, error)
    return True


def _earlier_attempts(
    task_id: str, run: RunFiles, replicator: Replicator
) -> Iterable[tuple[StepFolder, str, str, frozenset[str]]]:
    seen = set()
    for row in replicator.state.open_attempts(replicator.name):
        seen.add(row.folder)
        yield StepFolder(run.store, row.folder), row.id, row.kind, frozenset(row.tables)
    root = run.store.url("")
    urls = drivers.running(f"{root}steps/")
    local_folders = [StepFolder(run.store, url.removeprefix(root).rpartition("/")[0]) for url in urls]
    for folder in (*run.submissions(task_id), *local_folders):
        step = None if folder.path in seen else folder.step()
        seen.add(folder.path)
        if step is not None and (folder in local_folders or folder.result() is None):
            yield folder, step.attempt, step.kind, frozenset(task.table for task in step.tables)


def _end_driver(folder: StepFolder) -> bool:
    """Kill the attempt's driver. True if it is known to have ended; its secrets file is then removed."""
    ended = drivers.end(folder.step_url)
    submission = folder.submission()
    local = submission is not None and bool(submission.place) and submission.place == drivers.process_space()
    if not ended or not (local or folder.result() is not None):
        return False
    step = folder.step()
    if local and step is not None:
        secrets.remove(Path(step.secrets_path))
    return True

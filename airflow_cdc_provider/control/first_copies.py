"""First copies that an operator has paused, or that a step has blocked. The target has no table yet whose state could
say so, so the state is in a file of staging. The readers of a copy look for its pause."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, kept_copy_path
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import is_selected
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget, StagingInvalid
from airflow_cdc_provider.core.log.change_log import table_folder, table_of_folder
from airflow_cdc_provider.core.log.copy_progress import COPIES, blocked_path, copy_folder, paused_path
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.renamed_texts import with_new_name
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.target import TargetState

T = TypeVar("T")


@dataclass(frozen=True)
class BlockedCopy:
    """``definition_sha256``, ``schema_id``: of the copy that was tried."""

    state: State
    definition_sha256: str
    schema_id: str

    def blocks(self, task: TableTask) -> bool:
        """A table whose rule or columns are other ones now has another copy, which may succeed."""
        return (self.definition_sha256, self.schema_id) == (task.definition_sha256, task.schema.schema_id)


def block_copy(replicator: Replicator, task: TableTask, state: State) -> None:
    _write(replicator, blocked_path(task.table), BlockedCopy(state, task.definition_sha256, task.schema.schema_id))


def _write(replicator: Replicator, path: str, value: State | BlockedCopy) -> None:
    replicator.log.store.write(path, json.dumps(to_plain(value)).encode())


def paused_copies(replicator: Replicator, tables: Iterable[str]) -> dict[str, State]:
    return _read(replicator, tables, paused_path, State)


def blocked_copies(replicator: Replicator, tables: Iterable[str]) -> dict[str, BlockedCopy]:
    return _read(replicator, tables, blocked_path, BlockedCopy)


def _read(replicator: Replicator, tables: Iterable[str], path: Callable[[str], str], kind: type[T]) -> dict[str, T]:
    store, tables = replicator.log.store, list(tables)
    present = set(store.names(COPIES)) if tables else set[str]()
    begun = [table for table in tables if table_folder(table) in present and store.exists(path(table))]
    return {table: from_plain(kind, json.loads(store.read(path(table)))) for table in begun}


def rename_copies(replicator: Replicator, former: str, tables: Iterable[str]) -> None:
    """With the texts of a replicator that had the name ``former``."""
    tables = list(tables)
    for table, state in paused_copies(replicator, tables).items():
        _write(replicator, paused_path(table), with_new_name(state, former, replicator.name))
    for table, copy in blocked_copies(replicator, tables).items():
        _write(replicator, blocked_path(table), with_new_name(copy, former, replicator.name))


def stopped_copies(replicator: Replicator, tables: Iterable[str]) -> dict[str, State]:
    """Those that are paused or blocked. A pause has precedence."""
    tables = list(tables)
    blocked = {table: copy.state for table, copy in blocked_copies(replicator, tables).items()}
    return blocked | paused_copies(replicator, tables)


def change_copy(replicator: Replicator, table: str, target_table: str, state: State) -> None:
    """Pause the first copy of a table, or let it go on. Raises Fenced (CPY021) if the copy was committed meanwhile."""
    store = replicator.log.store
    if state.name is not TableState.PAUSED:
        store.delete(blocked_path(table))
        store.delete(paused_path(table))
        return
    _write(replicator, paused_path(table), state)
    if replicator.targets.state(table, target_table).control is None:
        return
    store.delete(paused_path(table))
    raise Fenced.of(
        "CPY021",
        f"the first copy of {table} was committed before its pause",
        where=table,
        do="nothing: the table is paused as one with a copy",
    )


def end_pauses(replicator: Replicator, tables: Iterable[str]) -> None:
    """Also of copies that were committed meanwhile: their pauses would be carried out by the next run."""
    for table in tables:
        replicator.log.store.delete(paused_path(table))


def pause_committed_copies(
    replicator: Replicator,
    targets: Mapping[str, str],
    states: Mapping[str, TargetState],
    run_id: str,
    log_info: LogInfo,
) -> bool:
    """Pause the tables whose first copy was committed at the moment of its pause. Returns whether there was any."""
    copied = [table for table, current in states.items() if current.control is not None]
    found = paused_copies(replicator, copied)
    for table, state in found.items():
        control = states[table].control
        try:
            if control is not None and control.state.name is TableState.REPLICATING:
                commit_fence(replicator, table, targets[table], states[table], run_id, state)
        except (Fenced, ForeignTarget) as error:
            log_info(str(error))
            continue
        replicator.log.store.delete(paused_path(table))
    return bool(found)


def row_of_copy(row: TableRow, state: State | None) -> TableRow:
    """The row of a table without a copy. ``state``: of its first copy, if that is paused or blocked."""
    if state is not None:
        return replace(row, state=state.name, since=state.since, reason=state.reason, remedy=state.remedy)
    return replace(row, state=TableState.PENDING, reason="", remedy="", error="")


def remove_lost_copies(replicator: Replicator) -> None:
    """The rows of first copies that no attempt can continue, because the log no longer reaches back to their anchor. Of
    a table that the YAML does not select, also that it was begun, paused or blocked: a table that gets the name later
    is another one."""
    store, oldest = replicator.log.store, replicator.log.oldest()
    claimed = {claim.table for claim in replicator.state.claims(replicator.name)}
    for table in filter(None, map(table_of_folder, store.names(COPIES))):
        kept = _kept_copy(replicator, table)
        if kept is None or kept.is_in(oldest) or table in claimed:
            continue
        store.delete(f"{copy_folder(table)}/{kept.id}" if is_selected(replicator, table) else copy_folder(table))


def first_window(replicator: Replicator, table: str, sealed: int) -> int:
    """The window after which the first copy of a table needs all windows. ``sealed``: the last one now."""
    kept = _kept_copy(replicator, table)
    return min(kept.window, sealed) if kept else sealed


def _kept_copy(replicator: Replicator, table: str) -> KeptCopy | None:
    path = kept_copy_path(table)
    try:
        return KeptCopy.decode(replicator.log.store.read(path), path)
    except (FileNotFoundError, StagingInvalid):
        return None

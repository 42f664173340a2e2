"""First copies that an operator has paused. The target has no table yet whose state could say so, so the state is in a
file of staging, which the readers of the copy look for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, kept_copy_path
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.errors import Fenced, StagingInvalid
from airflow_cdc_provider.core.log.change_log import table_folder
from airflow_cdc_provider.core.log.copy_progress import COPIES, paused_path
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.target import TargetState


def paused_copies(replicator: Replicator, tables: Iterable[str]) -> dict[str, State]:
    store = replicator.log.store
    present = set(store.names(COPIES))
    begun = [table for table in tables if table_folder(table) in present and store.exists(paused_path(table))]
    return {table: from_plain(State, json.loads(store.read(paused_path(table)))) for table in begun}


def change_copy(replicator: Replicator, table: str, target_table: str, state: State) -> None:
    """Pause the first copy of a table, or let it go on. Raises Fenced (CPY021) if the copy was committed meanwhile."""
    store = replicator.log.store
    if state.name is not TableState.PAUSED:
        store.delete(paused_path(table))
        return
    store.write(paused_path(table), json.dumps(to_plain(state)).encode())
    if replicator.targets.state(table, target_table).control is None:
        return
    store.delete(paused_path(table))
    raise Fenced.of(
        "CPY021",
        f"the first copy of {table} was committed before its pause",
        where=table,
        do="nothing: the table is paused as one with a copy",
    )


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
        except Fenced as error:
            log_info(str(error))
            continue
        replicator.log.store.delete(paused_path(table))
    return bool(found)


def row_of_copy(row: TableRow, state: State | None) -> TableRow:
    """The row of a table without a copy. ``state``: of its pause; None if it is not paused."""
    if state is None:
        return replace(row, state=TableState.PENDING, reason="", remedy="") if row.state is TableState.PAUSED else row
    return replace(row, state=state.name, since=state.since, reason=state.reason, remedy=state.remedy)


def first_window(replicator: Replicator, table: str, sealed: int) -> int:
    """The window after which the first copy of a table needs all windows. ``sealed``: the last one now."""
    path = kept_copy_path(table)
    try:
        return min(KeptCopy.decode(replicator.log.store.read(path), path).window, sealed)
    except (FileNotFoundError, StagingInvalid):
        return sealed

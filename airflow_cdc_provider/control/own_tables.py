"""Whether a process has the state store whose runs write the copies of a replicator."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.control.inventory import known_tables, tables_in_staging
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.table_checks import check_store
from airflow_cdc_provider.core.errors import UNREADABLE, ForeignTarget, Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord


def require_own_tables(replicator: Replicator) -> None:
    """Raises ForeignTarget (STA007) if each copy belongs to another state store: no run carries out a command that is
    stored in this one. Reads one control record of staging if the first copy is of this one."""
    owner, tables = replicator.state.owner(), tables_in_staging(replicator)
    if any((record := replicator.log.newest_control(table)) and record.owner == owner for table in tables):
        return
    problem: Problem | None = None
    for table, target in tables.items():
        control = _control(replicator, table, target)
        if control is None or control.replicator != replicator.name:
            continue
        problem = check_store(replicator.name, table, target, control, owner)
        if problem is None:
            return
    if problem:
        raise ForeignTarget(problem)


def require_own_copies(replicator: Replicator, tables: Iterable[str]) -> None:
    """Before a decision about these copies is written: a run of the store that they belong to would carry it out.
    Raises ForeignTarget (STA007) if one belongs to another state store."""
    owner, targets = replicator.state.owner(), known_tables(replicator)
    for table in sorted(targets.keys() & set(tables)):
        control = replicator.targets.state(table, targets[table]).control
        if control and (problem := check_store(replicator.name, table, targets[table], control, owner)):
            raise ForeignTarget(problem)


def _control(replicator: Replicator, table: str, target_table: str) -> ControlRecord | None:
    try:
        return replicator.targets.state(table, target_table).control
    except UNREADABLE:
        return None

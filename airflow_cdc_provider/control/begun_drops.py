"""Drops of copies that an earlier run has begun, of tables that the source lists again.

A mark in staging says that the fence of the drop is committed, and that the drop is not finished: then a copy that
cannot be read any more is one that is dropped in part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.observe import Observation
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.table_rows import COPY_DROPPED, dropped_row
from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.listed_tables import NOT_DROPPED, on_dropped_table
from airflow_cdc_provider.core.decisions.operator_decisions import dropped_identity
from airflow_cdc_provider.core.errors import UNREADABLE, Blocked, CdcError, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import drop_mark_path
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.states import State, TableState, drops_copy
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables


@dataclass(frozen=True)
class BegunDrop:
    """``goes_on``: the policy still is to drop the copy; else it is kept."""

    table: str
    target: str
    identity: str
    goes_on: bool


def mark_begun(replicator: Replicator, table: str, identity: str) -> None:
    replicator.log.store.write(drop_mark_path(table), identity.encode())


def begun_identity(replicator: Replicator, table: str) -> str | None:
    """That of a copy that is marked."""
    path = drop_mark_path(table)
    return replicator.log.store.read(path).decode() if replicator.log.store.exists(path) else None


def remove_copy(replicator: Replicator, table: str, target_table: str, identity: str) -> None:
    """``table``: its target drops tables."""
    target = replicator.targets.of(table)
    assert isinstance(target, ReleasesTables)
    target.drop(target_table, identity)
    failpoint("drop.dropped")
    target.release(table, target_table)
    replicator.log.store.delete(drop_mark_path(table))


def not_dropped(table: str, target_table: str, error: CdcError) -> Problem:
    return Problem(
        NOT_DROPPED,
        f"the copy of {table}, which the source dropped, is not dropped yet",
        where=target_table,
        found=str(error),
        do="nothing, if the target did not answer: the next run drops it; else remove what prevents it",
        table=source_table(table),
    )


def begun_drops(replicator: Replicator, facts: Facts) -> Iterator[BegunDrop]:
    """Of the tables of a run. While another run has the copy lane, it may copy one of them anew."""
    for table in facts.tables if facts.copy_lane else ():
        task = table.task
        identity = _identity(replicator, facts, table)
        if identity is not None and isinstance(replicator.targets.of(task.table), ReleasesTables):
            goes_on = on_dropped_table(facts.definition, task.rule) is OnDroppedTable.DROP
            yield BegunDrop(task.table, task.target, identity, goes_on)


def _identity(replicator: Replicator, facts: Facts, table: TableFacts) -> str | None:
    name, control = table.task.table, table.task.control
    if table.copied_by:
        return None
    if table.problem or control is None:
        return begun_identity(replicator, name) if table.problem or table.known else None
    own = (control.replicator, control.owner) == (facts.definition.name, facts.owner)
    return dropped_identity(replicator.log.decisions(), name) if own and drops_copy(control.state) else None


def finish_begun_drops(
    replicator: Replicator, observation: Observation, run_id: str, log_info: LogInfo
) -> Mapping[str, Problem | None]:
    """Finish the drops, so that the tables are copied anew, or take them back where copies are kept now. Returns the
    tables, each with the reason where its drop is not finished."""
    ended = dict[str, Problem | None]()
    for begun in begun_drops(replicator, observation.facts):
        try:
            if begun.goes_on:
                _finish(replicator, begun, log_info)
            elif begun.table in observation.states:
                _take_back(replicator, observation, begun, run_id, log_info)
            else:
                continue
        except (Blocked, Fenced, *UNREADABLE) as error:
            log_info(f"{begun.table} is not copied anew in this run: {error}")
            ended[begun.table] = not_dropped(begun.table, begun.target, error)
        else:
            ended[begun.table] = None
    return ended


def _finish(replicator: Replicator, begun: BegunDrop, log_info: LogInfo) -> None:
    remove_copy(replicator, begun.table, begun.target, begun.identity)
    at, table = utc_now(), begun.table
    replicator.state.change_tables(
        replicator.name, lambda rows: [dropped_row(rows[table], COPY_DROPPED, "", at)] if table in rows else []
    )
    where = replicator.targets.of(table).locate(begun.target)
    log_info(f"{table}: the source had dropped it; dropped {where}")


def _take_back(
    replicator: Replicator, observation: Observation, begun: BegunDrop, run_id: str, log_info: LogInfo
) -> None:
    state = State(TableState.REPLICATING, utc_now(), "its copy is kept", set_by=run_id)
    commit_fence(replicator, begun.table, begun.target, observation.states[begun.table], run_id, state)
    replicator.log.store.delete(drop_mark_path(begun.table))
    log_info(f"{begun.table}: the source had dropped it; its copy is kept")


def with_unfinished(observation: Observation, ended: Mapping[str, Problem | None]) -> Observation:
    """With the reasons why drops are not finished."""
    tables = tuple(
        replace(table, problem=ended[table.task.table] or table.problem) if table.task.table in ended else table
        for table in observation.facts.tables
    )
    return replace(observation, facts=replace(observation.facts, tables=tables))

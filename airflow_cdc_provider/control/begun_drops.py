"""Drops of copies that have begun: how they go on, and how they end.

A drop begins with the fence that gives the copy the state ``dropping``. From then the copy takes no changes and no
commands. Before anything of it is removed, it is marked (see ``drop_marks``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.control.drop_marks import DropMark, end_mark, mark_copy, marked_copies
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.observe import Observation
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.control.table_rows import COPY_DROPPED, dropped_row
from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.listed_tables import kept_in_part, not_dropped, on_dropped_table
from airflow_cdc_provider.core.decisions.operator_decisions import state_before_drop
from airflow_cdc_provider.core.errors import UNREADABLE, Blocked, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.states import State, TableState, drops_copy
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import ReleasesTables, TargetState


class Ending(StrEnum):
    """``finish``: the table is copied anew. ``take_back``: the copy goes on, since copies are kept now. ``wait``: it
    would go on, but parts of it may be gone."""

    FINISH = "finish"
    TAKE_BACK = "take_back"
    WAIT = "wait"


@dataclass(frozen=True)
class BegunDrop:
    """``unread``: why the copy could not be read."""

    table: str
    target: str
    mark: DropMark
    ending: Ending
    unread: Problem | None = None


def marks_of_run(replicator: Replicator, facts: Facts) -> Mapping[str, DropMark]:
    return marked_copies(replicator, [table.task.table for table in facts.tables])


def begun_drops(observation: Observation, marked: Mapping[str, DropMark]) -> Iterator[BegunDrop]:
    """Of tables that the source lists again. While another run has the copy lane, it may copy one of them anew."""
    facts = observation.facts
    for table in facts.tables if facts.copy_lane else ():
        name = table.task.table
        if not table.copied_by and (begun := _begun(facts, table, observation.states.get(name), marked.get(name))):
            yield begun


def _begun(facts: Facts, table: TableFacts, current: TargetState | None, mark: DropMark | None) -> BegunDrop | None:
    """``current``: None if it was not read."""
    name, target, unread = table.task.table, table.task.target, table.problem
    kept = on_dropped_table(facts.definition, table.task.rule) is not OnDroppedTable.DROP
    control = current.control if current else None
    if mark is not None and (mark.is_of(current) if current else unread is not None):
        nothing_left = current is not None and control is None
        return BegunDrop(name, target, mark, Ending.WAIT if kept and not nothing_left else Ending.FINISH, unread)
    if current is None or control is None or not drops_copy(control.state):
        return None
    own = (control.replicator, control.owner) == (facts.definition.name, facts.owner)
    ending = Ending.TAKE_BACK if kept else Ending.FINISH
    return BegunDrop(name, target, DropMark(current.identity, control.fence), ending) if own else None


def finish_begun_drops(
    replicator: Replicator, observation: Observation, run_id: str, log_info: LogInfo
) -> Mapping[str, Problem | None]:
    """Finish the drops, so that the tables are copied anew, or take them back where copies are kept now. Returns the
    tables, each with the reason where its drop is not finished."""
    marked = marks_of_run(replicator, observation.facts) if observation.facts.copy_lane else {}
    for table in marked.keys() & observation.states.keys():
        if not marked[table].is_of(observation.states[table]):
            end_mark(replicator, table)
    found = begun_drops(observation, marked)
    return {begun.table: _end(replicator, observation, begun, run_id, log_info) for begun in found}


def with_unfinished(observation: Observation, ended: Mapping[str, Problem | None]) -> Observation:
    """With the reasons why drops are not finished."""
    tables = tuple(
        replace(table, problem=ended[table.task.table] or table.problem) if table.task.table in ended else table
        for table in observation.facts.tables
    )
    return replace(observation, facts=replace(observation.facts, tables=tables))


def _end(
    replicator: Replicator, observation: Observation, begun: BegunDrop, run_id: str, log_info: LogInfo
) -> Problem | None:
    """Why the drop is not finished."""
    if begun.ending is Ending.WAIT:
        return kept_in_part(begun.table, begun.target, str(begun.unread or "a mark in staging"))
    try:
        if begun.ending is Ending.FINISH:
            _finish(replicator, begun, log_info)
        else:
            _take_back(replicator, observation, begun, run_id, log_info)
    except (Blocked, Fenced, *UNREADABLE) as error:
        log_info(f"{begun.table} is not copied anew in this run: {error}")
        return not_dropped(begun.table, begun.target, str(error))
    return None


def _finish(replicator: Replicator, begun: BegunDrop, log_info: LogInfo) -> None:
    remove_copy(replicator, begun.table, begun.target, begun.mark)
    where = replicator.targets.of(begun.table).locate(begun.target)
    log_info(f"{begun.table}: the source had dropped it; dropped {where}")


def remove_copy(replicator: Replicator, table: str, target_table: str, mark: DropMark) -> None:
    """Remove a copy whose drop has begun, or what is left of it. May be repeated after a crash."""
    target = replicator.targets.of(table)
    mark_copy(replicator, table, mark)
    if isinstance(target, ReleasesTables):  # unless the YAML names another type meanwhile
        target.drop(target_table, mark.identity)
        failpoint("drop.dropped")
        target.release(table, target_table, mark.identity)
    failpoint("drop.released")
    at = replicator.state.now()
    replicator.state.change_tables(
        replicator.name, lambda rows: [dropped_row(rows[table], COPY_DROPPED, "", at)] if table in rows else []
    )
    if marked_copies(replicator, [table]).get(table) == mark:
        end_mark(replicator, table)


def _take_back(
    replicator: Replicator, observation: Observation, begun: BegunDrop, run_id: str, log_info: LogInfo
) -> None:
    """The copy is again what it was before its drop."""
    before = state_before_drop(replicator.log.decisions(), begun.table, begun.mark.identity)
    state = before or State(TableState.REPLICATING, utc_now(), "its copy is kept", set_by=run_id)
    commit_fence(replicator, begun.table, begun.target, observation.states[begun.table], run_id, state)
    log_info(f"{begun.table}: the source had dropped it; its copy is kept")

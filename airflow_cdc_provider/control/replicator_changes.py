"""Registers replicators, and begins and ends changes of a whole replicator. The entry in the state store is written
before a change has any effect, and every task reads it first, so that no task acts on what the change takes apart."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.decisions.replicator_changes import (
    ChangeKind,
    ReplicatorChange,
    ReplicatorEntry,
    is_outdated,
    refusal,
    require_holder,
)
from airflow_cdc_provider.core.errors import Blocked, CommandRefused, Fenced, StepFailed
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.state.store import StateStore

RunningTasks = Callable[[], Sequence[str]]
"""The tasks of the replicator that Airflow runs now, as ``task of run``."""

WAIT_S = 300.0
"""How long a deletion waits for running tasks. A step notices within a minute that its lease is lost."""

POLL_S = 1.0


def require_unchanged(state: StateStore, definition: Definition) -> None:
    """Raises Blocked (CMD020 to CMD023) if the replicator was deleted, renamed or moved, or is about to be."""
    problem = refusal(state.replicators.get(definition.name), definition)
    if problem is not None:
        raise Blocked(problem)


def register(state: StateStore, definition: Definition, dag_version: str = "") -> bool:
    """Write the definition into the entry of the replicator. False if it is an earlier version than that of the entry.
    Raises as ``require_unchanged``."""
    outdated = False

    def registered(entry: ReplicatorEntry | None) -> ReplicatorEntry:
        nonlocal outdated
        if problem := refusal(entry, definition):
            raise Blocked(problem)
        if entry is None:
            return ReplicatorEntry(definition, utc_now(), dag_version=dag_version)
        outdated = is_outdated(entry, definition, dag_version)
        if outdated:
            return entry
        newest = max(dag_version, entry.dag_version) if entry.definition == definition else dag_version
        return replace(entry, definition=definition, dag_version=newest)

    state.replicators.change(definition.name, registered)
    return not outdated


def begin(state: StateStore, definition: Definition, kind: ChangeKind, by: str, **arguments: Any) -> ReplicatorChange:
    """Record a change, or take over the one that an earlier call has begun: the process of that call does nothing more.
    ``definition``: if no run has one. Raises CommandRefused (CMD024) if another change is not finished, Blocked
    (CMD020, CMD021, CMD023) if one was finished meanwhile."""
    change = ReplicatorChange(kind, uuid.uuid4().hex, by, utc_now(), uuid.uuid4().hex, **arguments)
    entry = state.replicators.change(definition.name, lambda entry: _begun(entry, definition, change, arguments))
    assert entry is not None
    assert entry.change is not None
    return entry.change


def _begun(
    entry: ReplicatorEntry | None, definition: Definition, change: ReplicatorChange, arguments: Mapping[str, Any]
) -> ReplicatorEntry:
    entry = entry or ReplicatorEntry(definition, utc_now())
    unfinished = entry.unfinished
    if unfinished is None:
        if problem := refusal(entry, definition):
            raise Blocked(problem)
        return replace(entry, change=change)
    same = all(getattr(unfinished, name) == value for name, value in arguments.items())
    if unfinished.kind is not change.kind or not same:
        raise CommandRefused.of(
            "CMD024",
            f"another change of {definition.name} has begun and is not finished",
            where=definition.name,
            found=f"{unfinished.kind}, begun {unfinished.when}",
            do=f"finish it first: {unfinished.command(definition.name)}",
        )
    return replace(entry, change=replace(unfinished, holder=change.holder))


def begin_rename(state: StateStore, definition: Definition, renamed: Definition, by: str) -> ReplicatorChange:
    """As ``begin``, in the entries of both names at once. Raises CommandRefused (CMD029) if the new name is in use."""
    names: dict[str, Any] = {"former": definition.name, "name": renamed.name}
    change = ReplicatorChange(ChangeKind.RENAME, uuid.uuid4().hex, by, utc_now(), uuid.uuid4().hex, **names)
    begun: list[ReplicatorEntry] = []

    def begin_former(entry: ReplicatorEntry | None) -> ReplicatorEntry:
        begun.append(_begun(entry, definition, change, names))
        return begun[-1]

    def reserve(entry: ReplicatorEntry | None) -> ReplicatorEntry:
        _refuse_in_use(entry, definition.name, renamed.name)
        return ReplicatorEntry(renamed, utc_now(), begun[-1].change)

    state.replicators.change_two(definition.name, renamed.name, begin_former, reserve)
    assert begun[-1].change is not None
    return begun[-1].change


def check_holder(state: StateStore, name: str, change: ReplicatorChange) -> ReplicatorEntry:
    """The entry of a replicator, immediately before an effect of its ``change``. Raises Fenced (CMD034) if another
    process has taken the change over, or has finished it."""
    return require_holder(state.replicators.get(name), name, change)


def record(state: StateStore, name: str, change: ReplicatorChange, **changes: Any) -> ReplicatorChange:
    """The change with these ``changes``, which its entry has. Raises as ``check_holder``."""
    changed = replace(change, **changes)
    state.replicators.change(name, lambda entry: replace(require_holder(entry, name, change), change=changed))
    return changed


def require_free_name(state: StateStore, former: str, name: str) -> None:
    """Raises CommandRefused (CMD029) if the new name of a renaming is in use."""
    _refuse_in_use(state.replicators.get(name), former, name)


def _refuse_in_use(entry: ReplicatorEntry | None, former: str, name: str) -> None:
    reserved = entry is not None and entry.unfinished is not None and entry.unfinished.former == former
    if entry is not None and not entry.gone and not reserved:
        raise CommandRefused.of(
            "CMD029",
            f"there is a replicator {name}",
            where=name,
            found=f"registered {entry.registered_at[:19]}",
            do="choose another name, or delete that replicator first",
            data="nothing was changed",
        )


def end_runs(state: StateStore, name: str, change: ReplicatorChange, running: RunningTasks) -> None:
    """Take both lanes, so that running steps stop and kill their drivers, and wait until Airflow runs no task of the
    replicator. Raises StepFailed (CMD025) if a task does not end, Fenced as ``check_holder``."""
    check_holder(state, name, change)
    for lane in Lane:
        state.seize(name, lane, change.holder, LEASE_S)
    try:
        check_holder(state, name, change)
    except Fenced:
        release_lanes(state, name, change.holder)
        raise
    deadline = time.monotonic() + WAIT_S
    while tasks := running():
        if time.monotonic() > deadline:
            raise _still_running(name, tasks)
        time.sleep(POLL_S)


def require_no_runs(state: StateStore, name: str, running: RunningTasks) -> None:
    """Raises StepFailed (CMD025) if a run is active."""
    holders = {lane: state.holder(name, lane) for lane in Lane}
    active = [f"run {holder}, which holds the {lane} lane" for lane, holder in holders.items() if holder]
    if active := [*running(), *active]:
        raise _still_running(name, active)


def release_lanes(state: StateStore, name: str, holder: str) -> None:
    for lane in Lane:
        state.release(name, lane, holder)


def recreate(state: StateStore, name: str, by: str) -> bool:
    """Allow runs under the name of a replicator that was deleted or renamed. False if there is none."""
    found = []

    def removed(entry: ReplicatorEntry | None) -> ReplicatorEntry | None:
        if entry is None or not entry.gone:
            return entry
        found.append(entry)
        return None

    state.replicators.change(name, removed)
    if found:
        state.write_audit(name, by, "recreate", {})
    return bool(found)


def _still_running(name: str, tasks: Sequence[str]) -> StepFailed:
    return StepFailed.of(
        "CMD025",
        f"runs of {name} are active",
        where=name,
        found=", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else ""),
        do=f"pause the DAG, wait for its runs, and repeat the command: airflow dags pause {name}. A task whose worker "
        "has died can be marked as failed in Airflow; a lease expires after 15 minutes",
        data="nothing was removed",
    )

"""The replicators that have run: those in the state store."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.control.replicator_changes import require_unchanged
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.core.nearest import did_you_mean
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.state.store import StateStore


def require_entry(state: StateStore, name: str) -> ReplicatorEntry:
    """Raises NotFound (API001) if no run has registered it, or it was deleted or renamed."""
    entry = state.replicators.get(name)
    if entry is None or entry.gone:
        raise NotFound.of(
            "API001",
            f"no replicator {name} has run",
            found="deleted or renamed" if entry else "no entry in the state store",
            do="unpause its DAG and wait for its first run",
        )
    return entry


def entries_after(
    state: StateStore, after: str, search: str, allowed: Collection[str], limit: int
) -> list[ReplicatorEntry]:
    """At most ``limit`` entries of ``allowed`` whose names come after ``after`` and contain ``search``, by name."""
    names = [one for one in state.replicators.names() if one > after and one in allowed and search in one]
    found: list[ReplicatorEntry] = []
    for start in range(0, len(names), limit):
        found += [entry for entry in state.replicators.of(names[start : start + limit]) if not entry.gone]
        if len(found) >= limit:
            break
    return found[:limit]


def opened(state: StateStore, name: str) -> Replicator:
    """By the definition of its last run. Raises as ``require_entry`` and ``open_definition``."""
    return open_definition(state, require_entry(state, name).definition)


def open_definition(state: StateStore, definition: Definition) -> Replicator:
    """With its connections. Raises Blocked (CMD020 to CMD023) while the replicator is deleted, renamed or moved."""
    require_unchanged(state, definition)
    return open_replicator(definition, secrets_of(definition), state)


def require_tables(replicator: Replicator, names: Sequence[str]) -> tuple[str, ...]:
    """The names. Raises NotFound (API002) for one that is no table of the replicator."""
    known = known_tables(replicator)
    for name in names:
        if known and name not in known:
            raise NotFound.of(
                "API002",
                f"{replicator.name} has no table {name}",
                found=name[:100],
                do=did_you_mean(name, known) or "list its tables",
            )
    return tuple(names)

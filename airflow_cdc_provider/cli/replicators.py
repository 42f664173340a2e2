"""Resolves the replicator and the tables that a command names."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_cdc_provider.cli.output import list_names
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.control.replicator_changes import require_unchanged
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.errors import DefinitionInvalid, NotFound, Problem
from airflow_cdc_provider.core.nearest import did_you_mean
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.dag_bundles import bundle_folders
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.loader import ReplicatorFolder, find_clashes, load_file, load_folders
from airflow_cdc_provider.state.store import StateStore

REPLICATORS = "replicators"
"""The folder of the YAML files in a Dag bundle."""


def load_definitions() -> ReplicatorFolder:
    """The replicators of all Dag bundles on this host. A name in two bundles is a problem of both files."""
    return load_folders(dict.fromkeys(folder.resolve() for folder in _searched() if folder.is_dir()))


def unsearched_bundles() -> list[str]:
    """One line for each Dag bundle whose replicators are unknown, since it is not on this host."""
    return [f"Dag bundle {one.name} was not searched: {one.missing}" for one in bundle_folders() if one.missing]


def find_definition(name: str) -> Definition:
    """A replicator by name or by YAML file. Raises NotFound (CLI001), or DefinitionInvalid if its file has errors."""
    if name.endswith((".yaml", ".yml")):
        loaded = load_file(name)
        if shared := find_clashes([loaded]):
            raise DefinitionInvalid(*shared[loaded.file])
        return loaded.definition
    folder = load_definitions()
    if name in folder.loaded:
        return folder.loaded[name].definition
    broken = [problem for problem in folder.problems if Path(problem.where.partition(":")[0]).stem == name]
    if broken:
        raise DefinitionInvalid(*broken)
    problem = _unknown("replicator", name, folder.loaded, ", ".join(map(str, _searched())))
    if unsearched := unsearched_bundles():
        do = "; ".join(filter(None, (problem.do, "give the path of its YAML, or run the command where the bundle is")))
        problem = replace(problem, found="; ".join(unsearched), do=do)
    raise NotFound(problem)


def find_definitions(name: str | None) -> list[Definition]:
    """The replicator of this name or file; without a name all replicators of the Dag bundles, sorted by name."""
    if name:
        return [find_definition(name)]
    return [loaded.definition for _, loaded in sorted(load_definitions().loaded.items())]


@dataclass(frozen=True)
class FoundReplicator:
    """``definition``: that of its last run, else of its YAML."""

    definition: Definition
    entry: ReplicatorEntry | None


def find_registered(state: StateStore, name: str) -> FoundReplicator:
    """A replicator that has run or has a YAML. Raises as ``find_definition`` if it has neither."""
    entry = state.replicators.get(name)
    if entry is None:
        definition = find_definition(name)
        entry = state.replicators.get(definition.name)
        return FoundReplicator(entry.definition if entry else definition, entry)
    return FoundReplicator(entry.definition, entry)


def open_with_connections(definition: Definition) -> Replicator:
    """Raises Blocked if the replicator was deleted, renamed or moved."""
    state = open_state()
    require_unchanged(state, definition)
    return open_replicator(definition, secrets_of(definition), state)


def require_tables(replicator: Replicator, names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The given tables. Raises NotFound (CLI001) with a problem for each one that the replicator does not have."""
    known = set(known)
    problems = [_unknown("table", table, known, replicator.name) for table in names if table not in known]
    if problems:
        raise NotFound(*problems)
    return tuple(names)


def current_user() -> str:
    """The user of the command, for the audit log."""
    return getpass.getuser()


def _searched() -> list[Path]:
    return [one.path / REPLICATORS for one in bundle_folders() if not one.missing]


def _unknown(kind: str, name: str, known: Iterable[str], where: str) -> Problem:
    names = sorted(known)
    return Problem(
        "CLI001",
        f"no {kind} {name[:40]!r}",
        where=where,
        allowed=list_names(names) or "none",
        do=did_you_mean(name, names),
    )

"""From what the operator typed to a replicator and its tables."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from pathlib import Path

from airflow.configuration import conf

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.errors import CdcError, DefinitionInvalid, Problem
from airflow_cdc_provider.core.nearest import did_you_mean
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.loader import ReplicatorFolder, find_clashes, load_file, load_folder

SHOWN = 10


class NotFound(CdcError):
    """A replicator, table or file that is not there."""

    exit_code = 66


def definitions() -> ReplicatorFolder:
    """The replicators of the DAGs folder."""
    folder = Path(conf.get("core", "dags_folder")) / "replicators"
    return load_folder(folder) if folder.is_dir() else ReplicatorFolder({})


def find(name: str) -> Definition:
    """A replicator by its name or its file. Raises NotFound (CLI001), or DefinitionInvalid where its file is broken."""
    if name.endswith((".yaml", ".yml")):
        loaded = load_file(name)
        if shared := find_clashes([loaded]):
            raise DefinitionInvalid(*shared[loaded.file])
        return loaded.definition
    folder = definitions()
    if name in folder.loaded:
        return folder.loaded[name].definition
    broken = [problem for problem in folder.problems if Path(problem.where.partition(":")[0]).stem == name]
    if broken:
        raise DefinitionInvalid(*broken)
    raise NotFound(_unknown("replicator", name, folder.loaded, conf.get("core", "dags_folder") + "/replicators"))


def opened(definition: Definition) -> Replicator:
    return open_replicator(definition, secrets_of(definition), open_state())


def named(replicator: Replicator, wanted: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The tables as they were typed. Raises NotFound (CLI001) for every one that the replicator does not have."""
    known = set(known)
    problems = [_unknown("table", table, known, replicator.name) for table in wanted if table not in known]
    if problems:
        raise NotFound(*problems)
    return tuple(wanted)


def operator() -> str:
    """Who asks, for the audit."""
    return getpass.getuser()


def _unknown(kind: str, name: str, known: Iterable[str], where: str) -> Problem:
    names = sorted(known)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return Problem(
        "CLI001",
        f"no {kind} {name[:40]!r}",
        where=where,
        allowed=(", ".join(names[:SHOWN]) + more) or "none is known",
        do=did_you_mean(name, names),
    )

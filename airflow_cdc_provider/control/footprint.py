"""What exists for a replicator: at its source, in staging and in its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from airflow_cdc_provider.connectors.source_features import CreatesObjects, RetainsLog, SourceObject
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import tables_in_staging
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.replicator_changes import OwnedTable
from airflow_cdc_provider.core.errors import CdcError, CommandRefused, Problem
from airflow_cdc_provider.core.table.copies import in_target, target_of_copy

T = TypeVar("T")


@dataclass(frozen=True)
class Footprint:
    """``retained_bytes``: of the source's log, None if unknown. ``rows``: of each copy, by its name. ``left``: copies
    in targets that the YAML does not list any more. ``problems``: of systems that did not answer."""

    objects: tuple[SourceObject, ...] = ()
    retained_bytes: int | None = None
    copies: tuple[OwnedTable, ...] = ()
    rows: Mapping[str, int | None] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    problems: tuple[Problem, ...] = ()


def every_table(replicator: Replicator) -> dict[str, str]:
    """Name of the copy → target table, for every copy that exists or may exist, dropped ones included, in the targets
    that the YAML lists."""
    rows = replicator.state.tables(replicator.name).values()
    listed = {row.table: row.target for row in rows if replicator.targets.has(row.table)}
    return {**tables_in_staging(replicator), **listed}


def left_copies(replicator: Replicator) -> tuple[str, ...]:
    """The copies in targets that the YAML does not list any more. They stay as they are."""
    rows = replicator.state.tables(replicator.name).values()
    return tuple(row.table for row in rows if not replicator.targets.has(row.table))


def left_note(copy: str) -> str:
    """For an operator."""
    return f"{copy} is left as it is: the YAML does not list target {target_of_copy(copy)} any more"


def own_copies(replicator: Replicator) -> tuple[OwnedTable, ...]:
    """Raises CommandRefused (CMD026) if one belongs to another state store."""
    found = []
    for table, target in every_table(replicator).items():
        current = replicator.targets.state(table, target)
        if current.control is None or current.control.replicator != replicator.name:
            continue
        if current.control.owner != replicator.state.owner():
            raise CommandRefused.of(
                "CMD026",
                f"{table} belongs to another state store",
                where=replicator.targets.of(table).locate(target),
                found=f"owner {current.control.owner}",
                allowed=f"owner {replicator.state.owner()}",
                do="run the command in the Airflow that writes it; only if no other Airflow does: "
                f"airflow cdc state rebuild {replicator.name}",
                data="nothing was changed",
            )
        found.append(OwnedTable(table, target, current.identity))
    return tuple(found)


def require_known_tables(replicator: Replicator) -> None:
    """Raises CommandRefused (CMD036) if a target table is not known as a copy. It may be one that was made under
    another name of its target: it would not get the new name of its replicator, and would be lost."""
    left, rows = left_copies(replicator), replicator.state.tables(replicator.name)
    renamed = {in_target(copy, name): rows[copy].target for copy in left for name in replicator.targets}
    for table, target in {**renamed, **every_table(replicator)}.items():
        current = replicator.targets.state(table, target)
        if current.exists and current.control is None:
            raise CommandRefused.of(
                "CMD036",
                f"the target table of {table} exists, and is not its copy",
                where=replicator.targets.of(table).locate(target),
                found=f"a table without a control record of {table}",
                do="if it is the copy in a target that had another name, give the target that name again; otherwise "
                "rename the table, or set another `target` in the YAML; then repeat the command",
                data="nothing was changed",
            )


def fence_copies(replicator: Replicator, actor: str) -> None:
    """Raise the fence of every copy: its target rejects what earlier attempts may still commit."""
    for copy in own_copies(replicator):
        current = replicator.targets.state(copy.table, copy.target)
        if current.control is not None:
            commit_fence(replicator, copy.table, copy.target, current, actor)


def find_footprint(replicator: Replicator) -> Footprint:
    """Raises CommandRefused as ``own_copies``."""
    problems: list[Problem] = []

    def answer(ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except CommandRefused:
            raise
        except CdcError as error:
            problems.extend(error.problems)
            return None

    source, store = replicator.source, replicator.log.store
    objects = answer(source.objects) if isinstance(source, CreatesObjects) else ()
    retained = answer(lambda: _retained(replicator))
    copies = answer(lambda: own_copies(replicator)) or ()
    files = answer(lambda: list(store.files(""))) or []
    known = {row.table: row.rows for row in replicator.state.tables(replicator.name).values()}
    return Footprint(
        tuple(objects or ()),
        retained,
        copies,
        {copy.table: known.get(copy.table) for copy in copies},
        left_copies(replicator),
        len(files),
        sum(file.bytes for file in files),
        tuple(problems),
    )


def _retained(replicator: Replicator) -> int | None:
    source, log = replicator.source, replicator.log
    if not isinstance(source, RetainsLog):
        return None
    sealed = log.sealed()
    return source.retained_log(log.manifest(sealed).hi if sealed else None).bytes

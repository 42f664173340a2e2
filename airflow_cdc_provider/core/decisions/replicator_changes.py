"""A replicator's entry in the state store: its definition, and its deletion, renaming or move. While a change is in
progress, no task of the replicator does anything: the change takes apart what the tasks would use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.decisions.run_plan import RunPlan
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.core.spec.definition import Definition, Staging, whole_fingerprint
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import WITHOUT_COPY


class ChangeKind(StrEnum):
    DELETE = "delete"
    RENAME = "rename"
    MOVE = "move"


@dataclass(frozen=True)
class OwnedTable:
    """A copy that belonged to the replicator when its deletion began. ``identity``: of the target table."""

    table: str
    target: str
    identity: str


@dataclass(frozen=True)
class ReplicatorChange:
    """Times are UTC in ISO 8601 format; ``done_at`` is empty while the change is in progress. ``holder``: the process
    that carries it out; a repetition of the command takes it over.

    ``owned``: the tables of a deletion, None until they are fenced. ``former`` and ``name``: the names of a renaming,
    which both entries have; ``copied``: whether its staging folder is. ``former_staging`` and ``staging``: of a
    move."""

    kind: ChangeKind
    id: str
    requested_by: str
    requested_at: str
    holder: str = ""
    drop_copies: bool = False
    owned: tuple[OwnedTable, ...] | None = None
    former: str = ""
    name: str = ""
    copied: bool = False
    former_staging: Staging | None = None
    staging: Staging | None = None
    done_at: str = ""

    @property
    def when(self) -> str:
        return f"on {(self.done_at or self.requested_at)[:19]} by {self.requested_by}"

    def command(self, replicator: str) -> str:
        """The command that finishes the change."""
        match self.kind:
            case ChangeKind.DELETE:
                return f"airflow cdc delete {replicator}{' --drop-copies' if self.drop_copies else ''}"
            case ChangeKind.RENAME:
                return f"airflow cdc rename {self.former} {self.name}"
            case ChangeKind.MOVE:
                return f"airflow cdc move {replicator} {self._staging_arguments()}"

    def _staging_arguments(self) -> str:
        assert self.staging is not None
        connection = f" --connection {in_shell(self.staging.connection)}" if self.staging.connection else ""
        return f"--staging {in_shell(self.staging.location)}{connection}"


@dataclass(frozen=True)
class ReplicatorEntry:
    """``definition``: that of the last run, which names everything that the replicator uses. ``dag_version``: the id of
    Airflow's version of the DAG with which that run was created; empty if its bundle has no versions."""

    definition: Definition
    registered_at: str
    change: ReplicatorChange | None = None
    dag_version: str = ""

    @property
    def unfinished(self) -> ReplicatorChange | None:
        return self.change if self.change is not None and not self.change.done_at else None

    @property
    def gone(self) -> bool:
        """Whether nothing is left under this name: it was deleted or renamed."""
        change = self.change
        return change is not None and bool(change.done_at) and change.kind is not ChangeKind.MOVE


def require_holder(entry: ReplicatorEntry | None, replicator: str, change: ReplicatorChange) -> ReplicatorEntry:
    """The entry, if it has the ``change``, unfinished and by the same process. Raises Fenced (CMD034)."""
    now = entry.unfinished if entry is not None else None
    if entry is None or now is None or (now.id, now.holder) != (change.id, change.holder):
        raise Fenced.of(
            "CMD034",
            f"another process has taken over the {change.kind} of {replicator}, or has finished it",
            where=replicator,
            found=f"the {change.kind} of {change.requested_at[:19]}, held by {now.holder}" if now else "no such change",
            do=f"see how it ends: airflow cdc status {replicator}",
            data="this process does nothing more",
        )
    return entry


def refusal(entry: ReplicatorEntry | None, definition: Definition) -> Problem | None:
    """Why no task of the replicator with this ``definition`` may run; None if it may."""
    if entry is None or entry.change is None:
        return None
    name, change = definition.name, entry.change
    if not change.done_at:
        return Problem(
            "CMD022",
            f"a {change.kind} of the replicator {name} has begun and is not finished",
            where=name,
            found=f"begun {change.when}",
            do=f"repeat the command until it succeeds: {change.command(name)}",
            data="no run starts until then",
        )
    match change.kind:
        case ChangeKind.DELETE:
            return Problem(
                "CMD020",
                f"the replicator {name} was deleted",
                where=name,
                found=f"deleted {change.when}, and its YAML still exists",
                do=f"remove the YAML; or, to start again with first copies: airflow cdc recreate {name}",
                data="nothing was read or written",
            )
        case ChangeKind.RENAME:
            return Problem(
                "CMD021",
                f"the replicator {name} was renamed to {change.name}",
                where=name,
                found=f"renamed {change.when}, and a YAML with the old name still exists",
                do=f"set `name: {change.name}` in the YAML; or, for another replicator with the old name: "
                f"airflow cdc recreate {name}",
                data=f"the tables and the change log belong to {change.name}",
            )
        case ChangeKind.MOVE:
            return _old_staging(entry, change, definition)


def is_outdated(entry: ReplicatorEntry | None, definition: Definition, dag_version: str) -> bool:
    """Whether a run has an earlier version of the YAML than the last one. Ids of Dag versions sort by time."""
    if entry is None or entry.definition == definition:
        return False
    return bool(dag_version) and dag_version < entry.dag_version


def left_out_of_window(entry: ReplicatorEntry | None, plan: RunPlan, rows: Iterable[TableRow]) -> tuple[str, ...]:
    """Copies that go on from the change log, and whose changes a window of this plan would lack, or have by other
    settings. Empty if the plan is of the newest definition, which may leave out tables."""
    if entry is None or plan.definition in ("", whole_fingerprint(entry.definition)):
        return ()
    captured = {task.table: task.definition_sha256 for task in plan.tables}
    return tuple(
        row.table
        for row in rows
        if row.state not in WITHOUT_COPY
        and row.control is not None
        and row.control.log_id == plan.log_id
        and captured.get(row.table) != row.control.definition_sha256
    )


def _old_staging(entry: ReplicatorEntry, change: ReplicatorChange, definition: Definition) -> Problem | None:
    """After a move, only a definition with the new location may run."""
    now = entry.definition.staging
    if definition.staging.location == now.location:
        return None
    connection = f" and `staging.connection: {now.connection}`" if now.connection else ""
    return Problem(
        "CMD023",
        f"the staging of {definition.name} was moved",
        where=definition.staging.location,
        found=f"moved {change.when}, and the YAML has another location",
        allowed=now.location,
        do=f"set `staging.location: {now.location}`{connection} in the YAML",
        data="nothing was read or written",
    )

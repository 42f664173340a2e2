"""Whether a copy belongs to this replicator, its change log, its source and its definition. Pure."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.facts import Facts, TableFacts
from airflow_cdc_provider.core.decisions.planned_source import identity_changes
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell

FOREIGN = "STA007"
"""The problem of a copy that the runs of another state store write."""


def check_owner(facts: Facts, table: TableFacts, control: ControlRecord) -> Problem | None:
    name = table.task.table
    if (control.replicator, control.table) != (facts.definition.name, name):
        return Problem(
            "STA006",
            f"the target table of {name} belongs to another replicator",
            where=table.task.target,
            found=f"{control.table} of replicator {control.replicator}",
            allowed=f"{name} of replicator {facts.definition.name}",
            do="set another `target` in the YAML, or rename the table",
            data="nothing was written to it",
        )
    return check_store(facts.definition.name, name, table.task.target, control, facts.owner)


def check_store(replicator: str, table: str, target: str, control: ControlRecord, owner: str) -> Problem | None:
    """Whether a copy belongs to this state store, which has the id ``owner``."""
    if control.owner == owner:
        return None
    return Problem(
        FOREIGN,
        f"{table} belongs to another state store",
        where=target,
        found=f"owner {control.owner}",
        allowed=f"owner {owner}",
        do="if both are of one Airflow, give all its processes one state store by the connection cdc_state; else stop "
        "the other Airflow, or restore its state store; only if no other Airflow writes this table: "
        f"airflow cdc state rebuild {replicator}",
        data="nothing was written to it",
    )


def check_log(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    """Whether the control record was written from this change log."""
    log = facts.log
    if control.log_id != log.log_id:
        what = f"{name} was written from another change log"
        return _log_problem(facts, name, "LOG001", what, f"log {log.log_id}", f"log {control.log_id}")
    if control.window > log.sealed:
        what = f"the change log ends before the cursor of {name}"
        found = f"last sealed window {log.sealed}"
        return _log_problem(facts, name, "LOG002", what, found, f"window {control.window} or later")
    expected = control.manifest_sha256 if log.oldest <= control.window else ""
    if expected and log.sha256.get(control.window) != expected:
        what = f"window {control.window} of the change log differs from the one that {name} was written from"
        found = f"manifest {log.sha256.get(control.window, '')[:12] or 'missing'}"
        return _log_problem(facts, name, "LOG003", what, found, f"manifest {expected[:12]}")
    return None


def _log_problem(facts: Facts, name: str, code: str, what: str, found: str, allowed: str) -> Problem:
    return Problem(
        code,
        what,
        where=facts.definition.staging.location,
        found=found,
        allowed=allowed,
        do=f"restore the staging folder, or copy again: {resync_line(facts, name)}",
        data="nothing was read, written or acknowledged",
    )


def check_retention(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    if facts.log.oldest <= control.window + 1:
        return None
    return Problem(
        "LOG005",
        f"the change log does not reach back to the cursor of {name}",
        where=facts.definition.staging.location,
        found=f"oldest window {facts.log.oldest}",
        allowed=f"window {control.window + 1}",
        do=resync_line(facts, name),
        data="the table is at its cursor",
    )


def check_source(facts: Facts, name: str, control: ControlRecord) -> Problem | None:
    if not control.source_identity or control.source_identity == facts.source_identity:
        return None
    return Problem(
        "SRC010",
        f"the source differs from the one that {name} was copied from",
        where=f"connection {facts.definition.source.connection}",
        found=identity_changes(control.source_identity, facts.source_identity),
        allowed="the source that the table was copied from",
        do=f"restore the connection, or copy again from the new source: {resync_line(facts, name)}",
        data="the copy is unchanged; nothing was acknowledged",
    )


def check_definition(facts: Facts, table: TableFacts, control: ControlRecord) -> Problem | None:
    if control.definition_sha256 == table.task.definition_sha256:
        return None
    name = table.task.table
    return Problem(
        "DEF040",
        f"the definition of {name} changed after it was copied",
        where=f"{facts.definition.name}, table {name}",
        found="another source, columns, where, key, on_delete or on_unrepresentable",
        do="revert the change, which is enough if no run has read changes since then, or copy again: "
        f"{resync_line(facts, name)}",
        data="the copy is unchanged; later changes are kept in the change log",
    )


def resync_line(facts: Facts, table: str) -> str:
    return _resync_line(facts.definition.name, table)


def _resync_line(replicator: str, table: str) -> str:
    return f"airflow cdc resync {replicator} --table {in_shell(table)}"


def repair_line(replicator: str, table: str, rule: TableRule) -> str:
    """How an operator repairs a table whose changes cannot be continued."""
    line = _resync_line(replicator, table)
    if rule.snapshot.extent.rows:
        return line
    return (
        f"copy its rows: set `snapshot: {{mode: initial}}` for the table, then {line}; or start it again without rows: "
        f"{line} --yes {replicator}"
    )

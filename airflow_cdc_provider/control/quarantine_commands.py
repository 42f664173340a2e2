"""Submits decisions about records in quarantine, for an operator."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.own_tables import require_own_copies
from airflow_cdc_provider.control.quarantine import QuarantineCase, corrected_table, open_cases, record_decisions
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus, key_used
from airflow_cdc_provider.core.decisions.corrections import canonical_values
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decisions_by_record
from airflow_cdc_provider.core.errors import CommandRefused, NotFound
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.log.quarantine import BadRecord, is_record_id
from airflow_cdc_provider.core.serde import to_plain

DECISIONS = {CommandKind.REPLAY: DecisionKind.REPLAY, CommandKind.DISCARD: DecisionKind.DISCARD}


@dataclass(frozen=True)
class DecidedRecords:
    """``cases``: the records that the decision is about; ``ended``: ids that are not in quarantine any more.
    ``command``: None if nothing is left to decide."""

    cases: Sequence[QuarantineCase]
    ended: Sequence[str]
    command: Command | None


def cases_of(replicator: Replicator, tables: Collection[str]) -> list[QuarantineCase]:
    """The records that wait for a decision. ``tables``: of these; of every table if it is empty."""
    log, targets = replicator.log, known_tables(replicator)
    chosen = log.with_bad_records(table for table in targets if not tables or table in tables)
    decisions, cases = log.decisions() if chosen else [], []
    for table in chosen:
        control = replicator.targets.state(table, targets[table]).control
        cases += open_cases(log, table, control, decisions) if control else []
    return cases


def decide_records(
    replicator: Replicator,
    kind: CommandKind,
    ids: Collection[str],
    tables: Collection[str],
    values: Mapping[str, str | None],
    reason: str,
    by: str,
    key: str,
) -> DecidedRecords:
    """Write a decision for each record, then the command that the next run carries out. ``ids``: of these records; of
    all in ``tables`` if it is empty. ``values``: corrected values by column, as texts, None for NULL, for one record
    that is applied again.

    Raises CommandRefused: CLI012 for values of several records, CLI013 without any choice, and as
    ``canonical_values``; KeyUsed (CMD002) for the key of another command; NotFound (CLI015) for an id that
    was never in quarantine; ForeignTarget (STA007) for a copy of another state store. A repetition with
    the same key decides nothing: another record may be waiting by then."""
    if values and len(ids) != 1:
        raise CommandRefused.of("CLI012", "corrected values require exactly one record", found=f"{len(ids)} records")
    if not ids and not tables:
        raise CommandRefused.of("CLI013", f"no records given to {kind}", allowed="record ids, or a table for all of it")
    asked = {"records": sorted(ids), "tables": sorted(tables)}
    if key and (first := replicator.state.command_of_key(replicator.name, key)):
        _require_same(replicator, first, kind, asked, values)
        return _of_first(replicator, first)
    cases = cases_of(replicator, tables)
    chosen = [case for case in cases if not ids or case.record.id in ids]
    waiting = {case.record.id for case in chosen}
    ended = [record_id for record_id in ids if record_id not in waiting]
    for record_id in ended:
        find_bad_record(replicator, record_id)
    if not chosen:
        return DecidedRecords((), ended, None)
    require_own_copies(replicator, {case.copy for case in chosen})
    corrected = [canonical_values(case.table, case.record.record, values) for case in chosen]
    decided = zip(chosen, corrected, strict=True)
    decisions = record_decisions(replicator, decided, DECISIONS[kind], reason, by)
    return DecidedRecords(chosen, ended, _submit(replicator, kind, chosen, decisions, asked, key, by))


def find_bad_record(replicator: Replicator, record_id: str) -> BadRecord:
    """The record, even if it is no longer in quarantine. Raises NotFound (CLI015) if it never was."""
    for table in known_tables(replicator) if is_record_id(record_id) else ():
        if record := replicator.log.bad_record(table, record_id):
            return record
    raise NotFound.of(
        "CLI015",
        f"record {record_id[:40]!r} was never in quarantine",
        where=replicator.name,
        do=f"airflow cdc quarantine list {replicator.name}",
    )


def show_record(replicator: Replicator, record_id: str, by: str) -> dict[str, Any]:
    """The record with its values, and the newest decision about it. Writes an audit entry. Raises as
    ``find_bad_record``."""
    record = find_bad_record(replicator, record_id)
    detail = {"table": record.table, "record": record.id}
    replicator.state.write_audit(replicator.name, by, "quarantine show", detail)
    decisions = replicator.log.decisions()
    found = {copy: decisions_by_record(decisions, copy).get(record.id) for copy in known_tables(replicator)}
    newest = max(filter(None, found.values()), key=lambda one: one.id, default=None)
    return {**to_plain(record), "decision": to_plain(newest)}


def without_values(case: QuarantineCase) -> dict[str, Any]:
    """The record without values of its row; ``show_record`` has these for one record."""
    record = case.record
    return {
        "id": record.id,
        "table": case.copy,
        "window": record.window,
        "position": record.position,
        "reason": record.reason,
        "codec": record.codec,
        "since": case.since,
        "parked": case.parked,
        "blocks_table": case.blocks_table,
        "decision": case.decision.kind.value if case.decision else None,
    }


def _require_same(
    replicator: Replicator,
    first: Command,
    kind: CommandKind,
    asked: Mapping[str, Any],
    values: Mapping[str, str | None],
) -> None:
    """Values are only in the decision, since the state store has no values of rows."""
    same = first.kind is kind and first.arguments.get("asked", asked) == asked
    if same and asked["records"]:
        decisions = [one for one in replicator.log.decisions() if one.record in first.arguments["records"]]
        same = any(one.kind is DECISIONS[kind] and _has_values(replicator, one, values) for one in decisions)
    if not same:
        raise key_used(first)


def _has_values(replicator: Replicator, decision: OperatorDecision, values: Mapping[str, str | None]) -> bool:
    """Whether a decision has these values, as its table has them now."""
    copy, target = decision.table, known_tables(replicator).get(decision.table)
    control = replicator.targets.state(copy, target).control if target else None
    if control is None:
        return decision.values.keys() == values.keys()
    try:
        given = canonical_values(corrected_table(copy, control), None, values)
    except CommandRefused:
        return False
    return canonical(decision.values) == canonical(given)


def _of_first(replicator: Replicator, first: Command) -> DecidedRecords:
    records: list[str] = first.arguments["records"]
    cases = [case for case in cases_of(replicator, first.tables) if case.record.id in records]
    waiting = {case.record.id for case in cases}
    return DecidedRecords(cases, [one for one in records if one not in waiting], first)


def _submit(
    replicator: Replicator,
    kind: CommandKind,
    cases: Sequence[QuarantineCase],
    decisions: Sequence[OperatorDecision],
    asked: Mapping[str, Any],
    key: str,
    by: str,
) -> Command:
    """Submit the command, or return the pending one with the same decisions, unless a run has begun to carry that
    out."""
    tables = tuple(sorted({case.copy for case in cases}))
    records = sorted(case.record.id for case in cases)
    own = sorted(decision.id for decision in decisions)
    if not key:
        for other in replicator.state.pending(replicator.name):
            same = (other.kind, other.tables, other.arguments.get("decisions"))
            if same == (kind, tables, own) and other.status is CommandStatus.PENDING:
                return other
    arguments = {"records": records, "decisions": own, "asked": dict(asked)}
    return replicator.state.request(replicator.name, kind, tables, arguments, key or str(uuid.uuid4()), by)

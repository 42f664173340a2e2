"""What a table does at a schema change: by the policy, by what its target can do, and by an operator's answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, alterations
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.history import history_of
from airflow_cdc_provider.core.table.questions import Answer, Question, question_id
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange, compare
from airflow_cdc_provider.core.table.source_names import in_shell

COPIED = frozenset({ChangeKind.NARROW, ChangeKind.CHANGE_KEY})
"""Changes that only another copy of the table can apply."""

GROWS = frozenset({ChangeKind.ADD_COLUMN, ChangeKind.DROP_COLUMN})
"""Changes after which old and new versions of rows fit into one table."""

Statements = Callable[[Sequence[Alteration]], tuple[str, ...] | None]
"""The statements by which the target executes alterations in place; None if it cannot execute one of them."""


@dataclass(frozen=True)
class SchemaStop:
    """Where the batches of a table end: after ``window`` its schema changes. ``unknown``: added columns whose value in
    existing rows is unknown. ``returning``: columns that were dropped and added again in one window."""

    window: int
    before: TableSchema
    after: TableSchema
    unknown: tuple[str, ...] = ()
    returning: tuple[str, ...] = ()


class SchemaAction(StrEnum):
    """``alter``: in place. ``copy``: copy the table again. ``ask``: wait for an operator. ``stop``: block the table."""

    ALTER = "alter"
    COPY = "copy"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True)
class SchemaDecision:
    """``problem``: for ``ask`` and ``stop``. ``question``: for ``ask``."""

    action: SchemaAction
    reason: str
    alterations: tuple[Alteration, ...] = ()
    problem: Problem | None = None
    question: Question | None = None


def question_about(control: ControlRecord, stop: SchemaStop) -> str:
    """The id of the question about this change."""
    return question_id(control.table, control.floor, stop.window, stop.before.schema_id, stop.after.schema_id)


def decide_schema_change(
    control: ControlRecord,
    stop: SchemaStop,
    policy: SchemaPolicy,
    statements: Statements,
    decision: OperatorDecision | None,
    can_copy: bool = True,
) -> SchemaDecision:
    """``decision``: the operator's answer to the question about this change, if there is one. ``can_copy``: the source
    can be read at any time, and not only when it sends another snapshot."""
    answered = decision is not None and decision.answer in (Answer.APPLY, Answer.RENAME)
    renamed = dict(decision.columns) if answered and decision else None
    changes = compare(stop.before, stop.after, renamed)
    decisive = [change for change in changes if not policy.passes([change])]
    reason = "; ".join([*map(str, decisive), *_further_reasons(stop)])
    chosen = OnChange.APPLY if answered else _strictest(changes, policy)
    altered = alterations(changes, stop.after.key, _on_drop(policy))
    copied = any(change.kind in COPIED for change in changes)
    if chosen is OnChange.APPLY and copied and can_copy:
        return SchemaDecision(SchemaAction.COPY, reason)
    alterable = altered is not None and _keeps_order(changes, stop) and statements(altered) is not None
    if chosen is OnChange.APPLY and alterable and not copied:
        return SchemaDecision(SchemaAction.ALTER, reason, altered or ())
    if chosen is OnChange.ASK:
        question = _question(control, stop, changes, altered, statements)
        return SchemaDecision(SchemaAction.ASK, reason, problem=asked(control, question), question=question)
    unfit = () if altered is not None and statements(altered) is not None and not copied else unfit_for_history(changes)
    return SchemaDecision(SchemaAction.STOP, reason, problem=_refused(control, stop, reason, can_copy, unfit))


def _further_reasons(stop: SchemaStop) -> list[str]:
    reasons = {
        f"the value of a new column in existing rows is unknown: {', '.join(stop.unknown)}": bool(stop.unknown),
        f"dropped and added again in one window: {', '.join(stop.returning)}": bool(stop.returning),
    }
    return [reason for reason, applies in reasons.items() if applies]


def _strictest(changes: Iterable[SchemaChange], policy: SchemaPolicy) -> OnChange:
    """Columns that may or may not have been renamed are never renamed without an operator."""
    found = set()
    for change in changes:
        chosen = policy.of(change.kind).value
        found.add(OnChange.STOP.value if not change.is_certain and chosen == OnChange.APPLY.value else chosen)
    return next((choice for choice in (OnChange.STOP, OnChange.ASK) if choice.value in found), OnChange.APPLY)


def _on_drop(policy: SchemaPolicy) -> Alter | None:
    return {OnDrop.SET_NULL: Alter.SET_NULL, OnDrop.DROP: Alter.DROP}.get(OnDrop(policy.of(ChangeKind.DROP_COLUMN)))


def _keeps_order(changes: Iterable[SchemaChange], stop: SchemaStop) -> bool:
    uncertain = any(not change.is_certain for change in changes)
    return not (stop.unknown or stop.returning or uncertain)


def _question(
    control: ControlRecord,
    stop: SchemaStop,
    changes: Sequence[SchemaChange],
    altered: Sequence[Alteration] | None,
    statements: Statements,
) -> Question:
    renames = _possible_renames(changes)
    certain = [change for change in changes if change.is_certain]
    copied = any(change.kind in COPIED for change in changes)
    applicable = altered is not None and _keeps_order(certain, stop) and not copied
    texts = statements(altered or ()) if applicable else None
    columns = _ignorable(changes, stop.after.key)
    answers = [
        *([Answer.APPLY] if texts is not None else []),
        *([Answer.RENAME] if renames and _can_rename(stop, dict(renames), statements) else []),
        *([Answer.IGNORE] if columns else []),
        Answer.RESYNC,
        Answer.LEAVE,
    ]
    return Question(
        question_about(control, stop),
        control.table,
        stop.window,
        (*map(str, changes), *_further_reasons(stop)),
        tuple(answers),
        texts or (),
        columns,
        renames,
        stop.after.schema_id,
    )


def copy_question(control: ControlRecord, changes: tuple[str, ...]) -> Question:
    """About changes that only another copy can apply, and that the stream does not carry."""
    number = question_id(control.table, control.floor, control.window, "", "\n".join(changes))
    return Question(number, control.table, control.window, changes, (Answer.RESYNC, Answer.LEAVE))


def _possible_renames(changes: Sequence[SchemaChange]) -> tuple[tuple[str, str], ...]:
    """Dropped column → added column, if there is one of each and they have one type."""
    dropped = [change.before for change in changes if change.kind is ChangeKind.DROP_COLUMN and change.before]
    added = [change.after for change in changes if change.kind is ChangeKind.ADD_COLUMN and change.after]
    if len(dropped) != 1 or len(added) != 1 or dropped[0].type != added[0].type:
        return ()
    return ((dropped[0].name, added[0].name),) if not (dropped[0].id and added[0].id) else ()


def _can_rename(stop: SchemaStop, renames: dict[str, str], statements: Statements) -> bool:
    changes = compare(stop.before, stop.after, renames)
    altered = alterations(changes, stop.after.key, None)
    applicable = all(change.kind is ChangeKind.RENAME for change in changes)
    return applicable and altered is not None and statements(altered) is not None


def _ignorable(changes: Iterable[SchemaChange], key: Iterable[str]) -> tuple[str, ...]:
    """The added and changed columns outside the key, by their names in the source."""
    ignorable = (ChangeKind.ADD_COLUMN, ChangeKind.WIDEN, ChangeKind.NARROW)
    columns = [change.after for change in changes if change.kind in ignorable and change.after]
    if {column.name for column in columns} & set(key):
        return ()
    return tuple(dict.fromkeys(column.source_name for column in columns if column.source_name))


def asked(control: ControlRecord, question: Question) -> Problem:
    return Problem(
        "SCH002",
        "a schema change waits for an operator's answer",
        where=f"{control.table}, after window {question.window}",
        found="; ".join(question.changes),
        allowed=f"one of the answers {', '.join(question.answers)}",
        do=f"answer in Airflow under Required Actions, or: airflow cdc decide {control.replicator} --table "
        f"{in_shell(control.table)} --answer …",
        data=f"the target has all changes up to window {question.window}; the change log keeps the rest",
    )


def _refused(
    control: ControlRecord, stop: SchemaStop, reason: str, can_copy: bool, unfit: Sequence[SchemaChange]
) -> Problem:
    columns = ", ".join(f"{column.name} {column.type}" for column in stop.after.columns)
    resync = f"airflow cdc resync {control.replicator} --table {in_shell(control.table)}"
    do = f"{resync} (copies the table with its current columns: {columns})"
    if not can_copy:
        do = f"let the connector send a new snapshot of the table, and run the DAG until it is read; {do}"
    elif unfit and control.schema and history_of(control.schema) is not History.NONE:
        do = continue_history(unfit, resync)
    return Problem(
        "SCH001",
        "a schema change cannot be applied automatically",
        where=f"{control.table}, after window {stop.window}",
        found=reason,
        allowed="changes that `schema_changes` allows and the target can execute in place",
        do=do,
        data=f"the target receives all changes up to window {stop.window}; the change log keeps the rest",
    )


def unfit_for_history(changes: Iterable[SchemaChange]) -> tuple[SchemaChange, ...]:
    """Those after which old and new versions do not fit into one table, unless the target executes them in place."""
    return tuple(change for change in changes if change.kind not in GROWS and change.is_certain)


ANOTHER_HISTORY = "set another `target` for a new history, or drop the table to start again without the old versions"


def continue_history(unfit: Iterable[SchemaChange], resync: str) -> str:
    """What an operator does about changes that are ``unfit_for_history``. ``resync``: the command."""
    if any(change.kind in COPIED for change in unfit):
        return ANOTHER_HISTORY
    return f"let the target execute the change in place (Delta: `table_features`), then {resync}; or {ANOTHER_HISTORY}"

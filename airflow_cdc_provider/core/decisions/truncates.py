"""What a table does at a TRUNCATE of its source: by the policy, and by an operator's answer. Pure."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision
from airflow_cdc_provider.core.decisions.schema_decisions import SchemaAction, SchemaDecision, asked
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.questions import Answer, Question, question_id
from airflow_cdc_provider.core.table.schema_changes import ChangeKind
from airflow_cdc_provider.core.table.source_names import in_shell


def question_about_truncate(control: ControlRecord, window: int) -> str:
    """The id of the question about the TRUNCATE in this window."""
    return question_id(control.table, control.floor, window, "", ChangeKind.TRUNCATE)


def is_ignored(decision: OperatorDecision | None) -> bool:
    """Whether an operator has decided that the rows stay in the copy."""
    return decision is not None and decision.answer is Answer.IGNORE


def may_be_applied(policy: SchemaPolicy, decision: OperatorDecision | None) -> bool:
    approved = decision is not None and decision.answer is Answer.APPLY
    return approved or policy.of(ChangeKind.TRUNCATE) is OnChange.APPLY


def decide_truncate(control: ControlRecord, window: int, policy: SchemaPolicy) -> SchemaDecision:
    """About a TRUNCATE that may not be applied yet. ``window``: the one that contains it."""
    reason = f"all rows were removed by TRUNCATE in window {window}"
    if policy.of(ChangeKind.TRUNCATE) is OnChange.STOP:
        return SchemaDecision(SchemaAction.STOP, reason, problem=_refused(control, window, reason))
    answers = (Answer.APPLY, Answer.IGNORE, Answer.RESYNC, Answer.LEAVE)
    number = question_about_truncate(control, window)
    question = Question(number, control.table, window - 1, (reason,), answers)
    return SchemaDecision(SchemaAction.ASK, reason, problem=asked(control, question), question=question)


def _refused(control: ControlRecord, window: int, reason: str) -> Problem:
    return Problem(
        "SCH004",
        "a TRUNCATE of the source is not applied",
        where=f"{control.table}, window {window}",
        found=reason,
        allowed="`truncate: apply` under `schema_changes`",
        do=f"airflow cdc resync {control.replicator} --table {in_shell(control.table)} (copies the rows that "
        "the source has now)",
        data=f"the target has all rows of before; the change log keeps all changes from window {window} on",
    )

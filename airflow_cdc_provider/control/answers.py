"""Answers to questions about schema changes, and about rows that differ from the source.

An answer is a decision file in staging, written before it has any effect. The next run carries it out with one fence
commit, which also removes the question from the table's state. So an answer has its effect once, whatever dies. Its
entry in the audit log comes first; an answer that is repeated after that makes no second one. A repair compares the
table again, and has no effect where nothing differs any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.own_tables import require_own_copies
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.decisions.operator_decisions import (
    DecisionKind,
    OperatorDecision,
    answer_to,
    new_decision,
)
from airflow_cdc_provider.core.errors import UNREADABLE, CommandRefused, Fenced
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.ignored_columns import ids_of
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.core.table.states import WITHOUT_COPY, State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState


def question_of(control: ControlRecord | None) -> Question | None:
    """What the table waits for."""
    return control.state.question if control and control.state.name is TableState.BLOCKED else None


def open_questions(replicator: Replicator, tables: Iterable[str] | None = None) -> dict[str, Question]:
    """The questions that wait by table. ``tables``: only about these; without, of tables that the index shows as
    blocked, so that no other target is asked. Raises as ``Targets.state`` if one does not answer."""
    rows, targets = replicator.state.tables(replicator.name), known_tables(replicator)
    found = {table: row.question for table, row in rows.items() if row.question and row.state is TableState.NEW}
    copied = {table: row.verified for table, row in rows.items() if row.state not in WITHOUT_COPY}
    found |= {table: verified.question for table, verified in copied.items() if verified and verified.question}
    blocked = {table for table, row in rows.items() if row.state is TableState.BLOCKED}
    chosen = {*blocked, *found} if tables is None else set(tables)
    for table in sorted(chosen & targets.keys()):
        if question := question_of(replicator.targets.state(table, targets[table]).control):
            found[table] = question
    return {table: found[table] for table in sorted(chosen & found.keys())}


def answer_open_question(
    replicator: Replicator, question: Question, answer: Answer, actor: str, reason: str
) -> OperatorDecision:
    """As ``answer_question``, if the table still waits for the answer. Raises CommandRefused (CMD043) if not."""
    current = open_questions(replicator, [question.table]).get(question.table)
    if current is None or current.id != question.id:
        earlier = answer_to(replicator.log.decisions(), question.id)
        if earlier is not None and earlier.answer is answer:
            return earlier
        raise CommandRefused.of(
            "CMD043",
            f"the question about {question.table} is not open any more",
            where=question.table,
            found=f"another question: {'; '.join(current.changes)}" if current else _outcome(earlier),
            do=f"airflow cdc decide {replicator.name} lists the open questions",
            data="nothing was decided",
        )
    return answer_question(replicator, current, answer, actor, reason)


def _outcome(earlier: OperatorDecision | None) -> str:
    if earlier is None:
        return "no question: the table was copied again, resumed or removed"
    return f"the answer {earlier.answer} by {earlier.decided_by} at {earlier.decided_at}"


def answer_question(
    replicator: Replicator, question: Question, answer: Answer, actor: str, reason: str
) -> OperatorDecision:
    """Write the answer. If the question has the same answer already, that one is returned. Raises CommandRefused if it
    has another one already (CMD041), or does not allow this one (CMD042), ForeignTarget (STA007) for a copy of another
    state store."""
    require_own_copies(replicator, [question.table])
    if answer not in question.answers:
        raise CommandRefused.of(
            "CMD042",
            f"the question about {question.table} does not allow the answer {answer}",
            where=question.table,
            found=answer,
            allowed=", ".join(question.answers),
            data="nothing was decided",
        )

    def make(decisions: Sequence[OperatorDecision]) -> OperatorDecision:
        """No other answer is written between the reading of ``decisions`` and the writing of this one."""
        earlier = answer_to(decisions, question.id)
        if earlier is not None and earlier.answer is answer:
            return earlier
        _require_open(question, earlier)
        return _new_answer(replicator, question, answer, actor, reason)

    decision = replicator.log.decide(make)
    failpoint("decision.after")
    return decision


def _require_open(question: Question, earlier: OperatorDecision | None) -> None:
    if earlier is not None and earlier.answer is not Answer.LEAVE:
        raise CommandRefused.of(
            "CMD041",
            f"the question about {question.table} is answered already",
            where=question.table,
            found=f"{earlier.answer} by {earlier.decided_by} at {earlier.decided_at}",
            do="nothing: the next run carries that answer out",
            data="nothing was decided",
        )


def _new_answer(
    replicator: Replicator, question: Question, answer: Answer, actor: str, reason: str
) -> OperatorDecision:
    """With its entry in the audit log."""
    decision = new_decision(
        DecisionKind.REPAIR if Answer.REPAIR in question.answers else DecisionKind.SCHEMA,
        replicator.name,
        question.table,
        actor,
        about=question.id,
        question=question.id,
        answer=answer,
        reason=reason,
        columns=_columns(replicator, question, answer),
        window=question.window,
    )
    detail = {"table": question.table, "question": question.id, "answer": answer.value, "reason": reason}
    replicator.state.write_audit(
        replicator.name, actor, "decide", {**detail, "changes": list(question.changes)}, once=True
    )
    return decision


def _columns(replicator: Replicator, question: Question, answer: Answer) -> dict[str, str]:
    match answer:
        case Answer.RENAME:
            return dict(question.renames)
        case Answer.IGNORE if question.columns:
            return ids_of(question.columns, replicator.log.schema(question.schema_id))
    return {}


def answered_questions(
    replicator: Replicator, states: Mapping[str, TargetState]
) -> dict[str, tuple[Question, OperatorDecision]]:
    """Tables whose question has an answer that is not carried out yet."""
    owner = replicator.state.owner()
    waiting = {
        table: question
        for table, current in states.items()
        if (control := current.control)
        and (control.replicator, control.owner) == (replicator.name, owner)
        and (question := question_of(control))
    }
    decisions = replicator.log.decisions() if waiting else []
    answers = {table: (question, answer_to(decisions, question.id)) for table, question in waiting.items()}
    return {
        table: (question, answer)
        for table, (question, answer) in answers.items()
        if answer is not None and answer.answer is not Answer.LEAVE
    }


def carry_out_answers(
    replicator: Replicator,
    targets: Mapping[str, str],
    states: Mapping[str, TargetState],
    run_id: str,
    log_info: LogInfo,
) -> bool:
    """Carry out the answers to the questions of these tables. Returns whether a table may have been fenced, so that
    ``states`` is stale. A table with a newer commit, or in a target that cannot be read, waits for the next run."""
    answered = answered_questions(replicator, states)
    for table, (question, decision) in answered.items():
        try:
            _carry_out(replicator, table, targets[table], states[table], question, decision, run_id)
        except (Fenced, *UNREADABLE) as error:
            log_info(f"{table}: {error}")
            continue
        log_info(f"{table}: {decision.answer}, as {decision.decided_by} decided at {decision.decided_at}")
    return bool(answered)


def _carry_out(
    replicator: Replicator,
    table: str,
    target_table: str,
    current: TargetState,
    question: Question,
    decision: OperatorDecision,
    run_id: str,
) -> None:
    assert current.control is not None
    state = State(
        TableState.RESYNCING if decision.answer is Answer.RESYNC else TableState.REPLICATING,
        utc_now(),
        f"{decision.answer}: {'; '.join(question.changes)}",
        set_by=decision.decided_by,
        command=decision.id,
    )
    ignored = current.control.ignored
    if decision.answer is Answer.IGNORE:
        ignored = ignored | decision.columns
    commit_fence(replicator, table, target_table, current, run_id, state, ignored=ignored)

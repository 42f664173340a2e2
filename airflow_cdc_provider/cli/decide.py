"""``decide``: lists the open questions, or answers one."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definition, open_with_connections, require_tables
from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.inventory import known_tables
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.questions import Answer, Question
from airflow_cdc_provider.hooks.dag_runs import require_runnable_dag, trigger_run
from airflow_cdc_provider.hooks.open_questions import close_question


@cli_command
def decide(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    require_tables(replicator, args.table, {*known_tables(replicator), *replicator.state.tables(replicator.name)})
    questions = list(open_questions(replicator, args.table or None).values())
    if not args.answer:
        return _listed(replicator, questions)
    if args.now:
        require_runnable_dag(replicator.name)
    question = _chosen(replicator, questions, args.question)
    decision = answer_open_question(replicator, question, Answer(args.answer), current_user(), args.reason)
    close_question(replicator.name, decision)
    run = trigger_run(replicator.name) if args.now else ""
    line = f"{question.table}: {decision.answer}; the next run carries it out"
    return CommandOutput({"decision": to_plain(decision), "run_id": run}, lines=[line])


def _chosen(replicator: Replicator, questions: list[Question], named: str) -> Question:
    """Raises CommandRefused (CMD044) unless exactly one question is meant."""
    chosen = [question for question in questions if not named or question.id == named]
    if len(chosen) == 1:
        return chosen[0]
    raise CommandRefused.of(
        "CMD044",
        "no open question" if not chosen else "several questions are open",
        where=replicator.name,
        found=", ".join(f"{question.id} about {question.table}" for question in questions) or "no question",
        allowed="one question",
        do="nothing" if not questions else "name one with --table or --question",
        data="nothing was decided",
    )


def _listed(replicator: Replicator, questions: list[Question]) -> CommandOutput:
    columns = ("question", "table", "changes", "answers", "statements")
    rows = [(q.id, q.table, "; ".join(q.changes), ", ".join(q.answers), "\n".join(q.statements)) for q in questions]
    lines = [] if questions else [f"{replicator.name} has no open question"]
    return CommandOutput({"questions": to_plain(questions)}, OutputTable(columns, rows), lines)

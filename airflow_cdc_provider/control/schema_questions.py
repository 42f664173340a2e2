"""The questions about schema changes that are open during a run."""

from __future__ import annotations

from airflow_cdc_provider.control.open_window import read_decision
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import read_results
from airflow_cdc_provider.control.schema_answers import question_of
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.table.questions import SchemaQuestion


def unanswered(replicator: Replicator, run_id: str) -> tuple[SchemaQuestion, ...]:
    """The questions that are open during a run, and that have no answer."""
    decision, results = read_decision(replicator, run_id), read_results(replicator.run(run_id))
    tasks = decision.plan.tables if decision else ()
    found = [question_of(task.control) or results.question(task.table) for task in tasks]
    found += [new.question for new in decision.new] if decision else []
    decisions = replicator.log.decisions()
    return tuple(question for question in found if question and answer_to(decisions, question.id) is None)

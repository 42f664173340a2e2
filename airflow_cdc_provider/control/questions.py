"""The questions that are open during a run: about schema changes, and about rows that differ from the source."""

from __future__ import annotations

from airflow_cdc_provider.control.answers import question_of
from airflow_cdc_provider.control.open_window import read_decision
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.results import Results, read_results
from airflow_cdc_provider.core.decisions.operator_decisions import answer_to
from airflow_cdc_provider.core.decisions.run_decision import RunDecision
from airflow_cdc_provider.core.proof.schedule import verified_row
from airflow_cdc_provider.core.spec.verification import OnDifference
from airflow_cdc_provider.core.table.questions import Question


def unanswered(replicator: Replicator, run_id: str) -> tuple[Question, ...]:
    """The questions that are open during a run, and that have no answer."""
    decision = read_decision(replicator, run_id)
    results = read_results(replicator.run(run_id), decision.plan.opening) if decision else Results()
    tasks = decision.plan.tables if decision else ()
    found = [question_of(task.control) or results.question(task.table) for task in tasks]
    found += [new.question for new in decision.new] if decision else []
    found += _about_differences(replicator, decision, results) if decision else []
    decisions = replicator.log.decisions()
    return tuple(question for question in found if question and answer_to(decisions, question.id) is None)


def _about_differences(replicator: Replicator, decision: RunDecision, results: Results) -> list[Question | None]:
    """Of the last comparison of each table. The results of this run are not in the index yet."""
    verify = replicator.definition.verify
    rows = replicator.state.tables(replicator.name) if verify.repair is OnDifference.ASK else {}
    verified = [
        verified_row(verify, results.comparison(task.table), rows[task.table].verified, decision.at)
        for task in decision.plan.tables
        if task.table in rows
    ]
    return [found.question for found in verified if found]

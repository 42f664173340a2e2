"""The DAG that asks questions: one run per question.

    ask ─► record ─► run

A run of the replicator must not wait for a person, and at most two of its runs are active. So a question is a run of a
DAG of its own, which waits without a worker. Its id is that of the question.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from airflow_cdc_provider.core.spec.dag_plan import REPLICATOR_TAG, DagPlan, TaskPlan, questions_dag_id
from airflow_cdc_provider.core.table.questions import ASK_TASK
from airflow_cdc_provider.operators.questions import AskOperator, FindQuestionsOperator, RecordAnswerOperator

START_DATE = datetime(2020, 1, 1, tzinfo=UTC)
OPEN_QUESTIONS = 1000
"""More than a replicator has tables: no question waits for another one."""
DOC = "Each run is a question to an operator. Answer it under Required Actions."


def build_questions_dag(dag_plan: DagPlan, definition: dict[str, Any]) -> DAG:
    """No variable of the DAG file has this DAG. Airflow finds it because it registers DAGs that are used in
    ``with``."""
    with DAG(
        questions_dag_id(dag_plan.dag_id),
        description=f"questions about {dag_plan.dag_id}",
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=OPEN_QUESTIONS,
        is_paused_upon_creation=False,
        tags=set(dag_plan.tags) - {REPLICATOR_TAG},
        doc_md=DOC,
        default_args={"owner": dag_plan.owner},
    ) as dag:
        ask = AskOperator(task_id=ASK_TASK, replicator=dag_plan.dag_id)
        record = RecordAnswerOperator(task_id="record", definition=definition, ask=ASK_TASK, retries=3)
        run = TriggerDagRunOperator(
            task_id="run",
            trigger_dag_id=dag_plan.dag_id,
            trigger_run_id="{{ run_id }}",
            logical_date=None,
            skip_when_already_exists=True,
        )
        ask.set_downstream(record)
        record.set_downstream(run)
    return dag


def ask_task(dag: DAG, task: TaskPlan, find: FindQuestionsOperator) -> Any:
    """Starts a run of that DAG for each question that ``find`` returns."""
    return TriggerDagRunOperator.partial(
        task_id=task.name,
        dag=dag,
        trigger_dag_id=questions_dag_id(dag.dag_id),
        logical_date=None,
        skip_when_already_exists=True,
        retries=task.retries,
        doc_md=task.doc,
    ).expand_kwargs(find.output)

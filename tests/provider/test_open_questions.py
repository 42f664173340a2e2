"""The question that waits in Airflow ends with an answer that was given elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunType
from sqlalchemy import delete, select

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, new_decision
from airflow_cdc_provider.core.spec.dag_plan import questions_dag_id
from airflow_cdc_provider.core.table.questions import ASK_TASK, QUESTION_RUN, Answer
from airflow_cdc_provider.hooks.open_questions import close_question
from tests.provider.api_client import add_dags
from tests.provider.waiting_table import QUESTION

DAG_ID, RUN_ID = questions_dag_id("shop"), f"{QUESTION_RUN}{QUESTION.id}"


@pytest.fixture
def waiting(metadata_database: None) -> None:
    """A run of the DAG of questions, whose task waits for an answer."""
    add_dags([DAG_ID])
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == DAG_ID))
        now = datetime.now(UTC)
        session.add(DagRun(DAG_ID, run_id=RUN_ID, run_type=DagRunType.MANUAL, run_after=now, state=DagRunState.RUNNING))
        session.flush()
        with DAG(DAG_ID, schedule=None):
            task = EmptyOperator(task_id=ASK_TASK)
        instance = TaskInstance(task, run_id=RUN_ID, state=TaskInstanceState.AWAITING_INPUT, dag_version_id=None)
        session.add(instance)
        session.flush()
        session.add(HITLDetail(ti_id=instance.id, options=["resync", "leave"], subject="public.a"))


def decided() -> OperatorDecision:
    return new_decision(
        DecisionKind.SCHEMA,
        "shop",
        QUESTION.table,
        "ada",
        about=QUESTION.id,
        question=QUESTION.id,
        answer=Answer.RESYNC,
    )


def test_the_task_gets_the_answer_and_its_giver_once(waiting: None) -> None:
    assert close_question("shop", decided())
    with create_session() as session:
        query = select(HITLDetail).join(TaskInstance, HITLDetail.ti_id == TaskInstance.id)
        detail = session.scalar(query.where(TaskInstance.dag_id == DAG_ID))
        assert detail is not None and detail.chosen_options == ["resync"]
        assert detail.responded_by is not None and detail.responded_by["name"] == "ada"
    assert not close_question("shop", decided()), "the question has its answer"


def test_without_a_task_nothing_is_closed(metadata_database: None) -> None:
    assert not close_question("no_such_replicator", decided())

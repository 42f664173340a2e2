"""Closes the question that waits in Airflow after it was answered on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.models.hitl import HITLDetail, HITLUser
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import handle_event_submit
from airflow.triggers.base import TriggerEvent
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select

from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision
from airflow_cdc_provider.core.spec.dag_plan import questions_dag_id
from airflow_cdc_provider.core.table.questions import ASK_TASK, QUESTION_RUN


def close_question(replicator: str, decision: OperatorDecision) -> bool:
    """As Airflow's REST API does for the same answer. Returns whether a task waited for it."""
    dag_id, run_id = questions_dag_id(replicator), f"{QUESTION_RUN}{decision.question}"
    with create_session() as session:
        task = TaskInstance.get_task_instance(dag_id, run_id, ASK_TASK, -1, lock_for_update=True, session=session)
        if task is None or task.state != TaskInstanceState.AWAITING_INPUT:
            return False
        of_task = select(HITLDetail).where(HITLDetail.ti_id == task.id)
        detail = session.scalar(of_task.with_for_update(of=HITLDetail))
        if detail is None or detail.response_received:
            return False
        detail.responded_by = HITLUser(id=decision.decided_by, name=decision.decided_by)
        detail.responded_at = datetime.now(UTC)
        detail.chosen_options = [str(decision.answer)]
        detail.params_input = {}
        event = TriggerEvent(detail.as_resume_event_payload())  # type: ignore[no-untyped-call]
        handle_event_submit(event, task_instance=task, session=session)
    return True

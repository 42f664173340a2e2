"""Questions to an operator: a run finds them, a second DAG asks them, and the answers are recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator

from airflow_cdc_provider.control.answers import answer_open_question
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.control.samples import sample_of
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.questions import QUESTION_RUN, Answer, Question
from airflow_cdc_provider.operators.failures import as_airflow_failures
from airflow_cdc_provider.operators.question_doc import question_doc
from airflow_cdc_provider.operators.replicator_task import ReplicatorTask

if TYPE_CHECKING:
    from airflow.sdk import Context


class FindQuestionsOperator(ReplicatorTask):
    """Find the questions that have no answer. Returns the arguments of a run of the questions
    DAG for each; the id of the run is that of the question, so a question is asked once."""

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> list[dict[str, Any]]:
        with as_airflow_failures():
            replicator = self.replicator()
            questions = unanswered(replicator, context["dag_run"].run_id)
            bodies = [question_doc(question, sample_of(replicator, question)) for question in questions]
        for question in questions:
            self.log_line(f"{question.table} waits for an answer: {'; '.join(question.changes)}")
        return [
            {"trigger_run_id": f"{QUESTION_RUN}{question.id}", "conf": {"question": to_plain(question), "body": body}}
            for question, body in zip(questions, bodies, strict=True)
        ]


class AskOperator(HITLOperator):
    """Ask an operator the question in the run's configuration. The task waits in Airflow's state ``awaiting_input``,
    without a worker, for an answer under Required Actions or by Airflow's REST API.

    :param replicator: the name of the replicator
    """

    template_fields: Collection[str] = ()
    ui_color = "#fff3d6"

    def __init__(self, *, replicator: str, **kwargs: Any) -> None:
        answers = [answer.value for answer in Answer]
        super().__init__(subject=f"A question about {replicator}", options=answers, **kwargs)
        self.replicator = replicator

    def execute(self, context: Context) -> Any:
        conf: Mapping[str, Any] = context["dag_run"].conf or {}
        question = from_plain(Question, conf["question"])
        found = "differs from its source" if question.about_difference else "has a schema change"
        self.subject = f"{self.replicator}: {question.table} {found}"
        self.body = conf["body"]
        self.options = [answer.value for answer in question.answers]
        return super().execute(context)


class RecordAnswerOperator(ReplicatorTask):
    """Record the answer of ``ask`` as a decision in staging; the next run of the replicator carries it out. Fails
    without a retry if the question is not open any more.

    :param ask: the id of the task that asked
    """

    ui_color = "#dfe9f3"

    def __init__(self, *, ask: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ask = ask

    def execute(self, context: Context) -> dict[str, Any]:
        conf: Mapping[str, Any] = context["dag_run"].conf or {}
        question = from_plain(Question, conf["question"])
        given = context["ti"].xcom_pull(task_ids=self.ask)
        answer, user = Answer(given["chosen_options"][0]), given.get("responded_by_user") or {}
        actor = user.get("name") or user.get("id") or "unknown"
        with as_airflow_failures():
            decision = answer_open_question(self.replicator(), question, answer, actor, "answered in Airflow")
        self.log_line(f"recorded: {decision.answer} by {decision.decided_by}")
        return {"answer": answer.value, "decision": decision.id}

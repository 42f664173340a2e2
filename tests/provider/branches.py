"""The DAG of a plan with all edges and trigger rules; its tasks do what the conf of the run specifies."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, BaseOperator, Context, TaskGroup
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_cdc_provider.core.spec.dag_plan import plan
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.operators.branching import BranchingTask


class ScriptedTask(BranchingTask):
    """Has the outcome in ``dag_run.conf[task_id]``: a list of tasks to follow, ``skip`` or ``fail``."""

    def execute(self, context: Context) -> None:
        outcome = (context["dag_run"].conf or {}).get(self.task_id)
        if outcome == "skip":
            raise AirflowSkipException
        if outcome == "fail":
            raise AirflowFailException
        if outcome:
            self.follow_branches(context, outcome)


def skeleton() -> DAG:
    definition = Definition(
        name="branches",
        source=Source("postgres", "db"),
        target=Target("delta", "/lake"),
        tables=(TableRule("a"),),
        staging=Staging("/staging"),
    )
    dag = DAG("branches", schedule=None, start_date=datetime(2020, 1, 1, tzinfo=UTC))
    groups = {"reconcile": TaskGroup("reconcile", dag=dag)}
    tasks: dict[str, BaseOperator] = {}
    for task in plan(definition).tasks:
        tasks[task.id] = ScriptedTask(
            task_id=task.name, dag=dag, task_group=groups.get(task.group), trigger_rule=task.trigger.value
        )
        tasks[task.id].is_teardown = task.teardown
        for before in task.after:
            tasks[before].set_downstream(tasks[task.id])
    return dag

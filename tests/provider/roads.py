"""The DAG of a plan with all edges and trigger rules, and tasks that only do what the run's conf tells them."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, BaseOperator, Context, TaskGroup
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_cdc_provider.core.spec.dag_plan import plan
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.operators.branching import BranchingTask


class Told(BranchingTask):
    """Does what ``dag_run.conf[task_id]`` says: a list of tasks to follow, ``skip`` or ``fail``."""

    def execute(self, context: Context) -> None:
        told = (context["dag_run"].conf or {}).get(self.task_id)
        if told == "skip":
            raise AirflowSkipException
        if told == "fail":
            raise AirflowFailException
        if told:
            self.follow_branches(context, told)


def skeleton() -> DAG:
    definition = Definition(
        "roads", Source("postgres", "db"), Target("delta", "/lake"), (TableRule("a"),), Staging("/staging")
    )
    dag = DAG("roads", schedule=None, start_date=datetime(2020, 1, 1, tzinfo=UTC))
    groups = {"reconcile": TaskGroup("reconcile", dag=dag)}
    tasks: dict[str, BaseOperator] = {}
    for task in plan(definition).tasks:
        tasks[task.id] = Told(
            task_id=task.name, dag=dag, task_group=groups.get(task.group), trigger_rule=task.trigger.value
        )
        for before in task.after:
            tasks[before].set_downstream(tasks[task.id])
    return dag

"""Builds an Airflow DAG from a YAML file. Only this module and ``questions_dag`` build DAGs.

A DAG file has three lines. Airflow parses a file only if it contains the words *airflow* and *dag*::

    from airflow_cdc_provider.factory import build_dag

    dag = build_dag(__file__)  # an Airflow DAG, made of replicators/<name of this file>.yaml

``build_dag`` reads only the YAML file: no connection, no variable, no state store, no network.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    AssetAny,
    AssetOrTimeSchedule,
    BaseOperator,
    CronDataIntervalTimetable,
    TaskGroup,
)

from airflow_cdc_provider.core.errors import DefinitionInvalid, Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.dag_plan import FIND_QUESTIONS, DagPlan, TaskKind, TaskPlan, asks, plan
from airflow_cdc_provider.dag_doc import dag_doc
from airflow_cdc_provider.loader import Loaded, load_file
from airflow_cdc_provider.operators.asset_events import EmitAssetEventsOperator
from airflow_cdc_provider.operators.questions import FindQuestionsOperator
from airflow_cdc_provider.operators.reconcile import PauseStreamOperator, ResumeStreamOperator
from airflow_cdc_provider.operators.spark import CdcSparkOperator
from airflow_cdc_provider.operators.window import CloseWindowOperator, FindHolesOperator, OpenWindowOperator
from airflow_cdc_provider.questions_dag import ask_task, build_questions_dag

log = logging.getLogger(__name__)

START_DATE = datetime(2020, 1, 1, tzinfo=UTC)
"""Airflow requires a start date to schedule a DAG. ``catchup`` is off: earlier intervals run only as a backfill."""

OPERATORS: dict[TaskKind, type[BaseOperator]] = {
    TaskKind.OPEN_WINDOW: OpenWindowOperator,
    TaskKind.SPARK: CdcSparkOperator,
    TaskKind.FIND_HOLES: FindHolesOperator,
    TaskKind.PAUSE_STREAM: PauseStreamOperator,
    TaskKind.RESUME_STREAM: ResumeStreamOperator,
    TaskKind.FIND_QUESTIONS: FindQuestionsOperator,
    TaskKind.CLOSE_WINDOW: CloseWindowOperator,
    TaskKind.EMIT_ASSET_EVENTS: EmitAssetEventsOperator,
}
EMITTING = frozenset({TaskKind.CLOSE_WINDOW, TaskKind.EMIT_ASSET_EVENTS})


def build_dag(dag_file: str | Path) -> DAG:
    """The DAG of the replicator of a DAG file: ``dags/shop.py`` → ``dags/replicators/shop.yaml``.

    Raises DefinitionInvalid, which Airflow shows as an import error of this file, with the line in the YAML.
    """
    path = Path(dag_file)
    loaded = load_file(path.parent / "replicators" / f"{path.stem}.yaml")
    if loaded.definition.name != path.stem:
        raise DefinitionInvalid(_name_mismatch(loaded, path))
    for warning in loaded.warnings:
        log.warning("%s", warning)
    dag_plan = plan(loaded.definition)
    dag = _dag(dag_plan, dag_doc(loaded.definition, loaded.warnings))
    # Airflow sets fileloc to the caller of DAG(), and workers parse that file.
    dag.fileloc = str(path)
    _add_tasks(dag, dag_plan, to_plain(loaded.definition))
    if asks(loaded.definition):
        build_questions_dag(dag_plan, to_plain(loaded.definition)).fileloc = str(path)
    return dag


def definition_of(file: str | Path) -> dict[str, Any]:
    """The definition in a YAML file, as the operators and ``ChangesAvailableSensor`` take it. Raises
    DefinitionInvalid."""
    return cast(dict[str, Any], to_plain(load_file(file).definition))


def _name_mismatch(loaded: Loaded, path: Path) -> Problem:
    """The replicator, its files and its DAG have one name, so that two files of a folder cannot define the same one."""
    return Problem(
        "DEF014",
        "the name of the replicator differs from the name of its file",
        f"{loaded.file}:{loaded.line}",
        found=loaded.definition.name,
        allowed=path.stem,
        do=f"set `name: {path.stem}`, or rename both files",
    )


def _dag(dag_plan: DagPlan, doc: str) -> DAG:
    return DAG(
        dag_plan.dag_id,
        description=dag_plan.description,
        schedule=_schedule(dag_plan),
        start_date=START_DATE,
        catchup=False,
        # A cleared run with the YAML of its first start would not know tables that were added since.
        rerun_with_latest_version=True,
        max_active_runs=dag_plan.max_active_runs,
        tags=set(dag_plan.tags),
        doc_md=doc,
        default_args={
            "owner": dag_plan.owner,
            "retry_delay": timedelta(seconds=dag_plan.retry_delay_s),
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": timedelta(seconds=dag_plan.max_retry_delay_s),
        },
    )


def _schedule(dag_plan: DagPlan) -> Any:
    time = CronDataIntervalTimetable(dag_plan.schedule, timezone="UTC") if dag_plan.schedule else None
    assets = AssetAny(*map(Asset, dag_plan.assets)) if dag_plan.assets else None
    return AssetOrTimeSchedule(timetable=time, assets=assets) if time and assets else time or assets


def _add_tasks(dag: DAG, dag_plan: DagPlan, definition: dict[str, Any]) -> None:
    groups: dict[str, TaskGroup] = {}
    tasks: dict[str, Any] = {}
    for task in dag_plan.tasks:
        if task.group and task.group not in groups:
            groups[task.group] = TaskGroup(task.group, dag=dag)
        if task.kind is TaskKind.ASK:
            tasks[task.id] = ask_task(dag, task, tasks[FIND_QUESTIONS])
            continue
        outlets = [AssetAlias(dag_plan.asset_alias)] if task.kind in EMITTING else []
        tasks[task.id] = OPERATORS[task.kind](
            task_id=task.name,
            dag=dag,
            task_group=groups.get(task.group),
            definition=definition,
            trigger_rule=task.trigger.value,
            retries=task.retries,
            max_active_tis_per_dag=task.max_active,
            doc_md=task.doc,
            outlets=outlets,
            **_spark_arguments(task),
        )
        tasks[task.id].is_teardown = task.teardown
    for task in dag_plan.tasks:
        for upstream in task.after:
            tasks[upstream].set_downstream(tasks[task.id])


def _spark_arguments(task: TaskPlan) -> dict[str, Any]:
    return {"step": task.step, "pool": task.pool} if task.step else {}

"""From a YAML file to an Airflow DAG. The only module that builds DAGs.

A DAG file is three lines; Airflow looks for the words *airflow* and *dag* in it::

    from airflow_cdc_provider.factory import build_dag

    dag = build_dag(__file__)  # an Airflow DAG, made of replicators/<name of this file>.yaml

Building reads the YAML file and nothing else: no connection, no variable, no state store, no network.
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
from airflow_cdc_provider.core.spec.dag_plan import DagPlan, TaskKind, TaskPlan, plan
from airflow_cdc_provider.dag_doc import dag_doc
from airflow_cdc_provider.loader import Loaded, load_file
from airflow_cdc_provider.operators.reconcile import PauseStreamOperator, ResumeStreamOperator
from airflow_cdc_provider.operators.spark import CdcSparkOperator
from airflow_cdc_provider.operators.window import CloseWindowOperator, FindHolesOperator, OpenWindowOperator

log = logging.getLogger(__name__)

START = datetime(2020, 1, 1, tzinfo=UTC)
"""Airflow schedules nothing without one. Runs before today come by backfill only: ``catchup`` is off."""

OPERATORS: dict[TaskKind, type[BaseOperator]] = {
    TaskKind.OPEN_WINDOW: OpenWindowOperator,
    TaskKind.SPARK: CdcSparkOperator,
    TaskKind.FIND_HOLES: FindHolesOperator,
    TaskKind.PAUSE_STREAM: PauseStreamOperator,
    TaskKind.RESUME_STREAM: ResumeStreamOperator,
    TaskKind.CLOSE_WINDOW: CloseWindowOperator,
}


def build_dag(dag_file: str | Path) -> DAG:
    """The DAG of the replicator that belongs to a DAG file: ``dags/shop.py`` → ``dags/replicators/shop.yaml``.

    Raises DefinitionInvalid, which Airflow shows as the import error of this file alone, with file and line.
    """
    path = Path(dag_file)
    loaded = load_file(path.parent / "replicators" / f"{path.stem}.yaml")
    if loaded.definition.name != path.stem:
        raise DefinitionInvalid(_other_name(loaded, path))
    for warning in loaded.warnings:
        log.warning("%s", warning)
    paper = plan(loaded.definition)
    dag = _dag(paper, dag_doc(loaded.definition, loaded.warnings))
    # Airflow would take the file that calls DAG(), and workers parse the file that is named here.
    dag.fileloc = str(path)
    _tasks(dag, paper, to_plain(loaded.definition))
    return dag


def definition_of(file: str | Path) -> dict[str, Any]:
    """The replicator in a YAML file, as ``ChangesAvailableSensor`` takes it. Raises DefinitionInvalid."""
    return cast(dict[str, Any], to_plain(load_file(file).definition))


def _other_name(loaded: Loaded, path: Path) -> Problem:
    """One name for the replicator, its files and its DAG: so no two files of a folder can mean the same replicator."""
    return Problem(
        "DEF014",
        "the replicator does not bear the name of its file",
        f"{loaded.file}:{loaded.line}",
        found=loaded.definition.name,
        allowed=path.stem,
        do=f"write `name: {path.stem}`, or rename both files",
    )


def _dag(paper: DagPlan, doc: str) -> DAG:
    return DAG(
        paper.dag_id,
        description=paper.description,
        schedule=_schedule(paper),
        start_date=START,
        catchup=False,
        max_active_runs=paper.max_active_runs,
        tags=set(paper.tags),
        doc_md=doc,
        default_args={
            "owner": paper.owner,
            "retry_delay": timedelta(seconds=paper.retry_delay_s),
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": timedelta(seconds=paper.max_retry_delay_s),
        },
    )


def _schedule(paper: DagPlan) -> Any:
    time = CronDataIntervalTimetable(paper.schedule, timezone="UTC") if paper.schedule else None
    assets = AssetAny(*map(Asset, paper.assets)) if paper.assets else None
    return AssetOrTimeSchedule(timetable=time, assets=assets) if time and assets else time or assets


def _tasks(dag: DAG, paper: DagPlan, definition: dict[str, Any]) -> None:
    groups: dict[str, TaskGroup] = {}
    tasks: dict[str, BaseOperator] = {}
    for task in paper.tasks:
        if task.group and task.group not in groups:
            groups[task.group] = TaskGroup(task.group, dag=dag)
        outlets = [AssetAlias(paper.asset_alias)] if task.kind is TaskKind.CLOSE_WINDOW else []
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
            **_spark_only(task),
        )
    for task in paper.tasks:
        for before in task.after:
            tasks[before].set_downstream(tasks[task.id])


def _spark_only(task: TaskPlan) -> dict[str, Any]:
    return {"step": task.step, "pool": task.pool} if task.step else {}

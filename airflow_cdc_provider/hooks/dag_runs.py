"""Runs of a replicator's DAG in Airflow."""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagRunAlreadyExists
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from airflow_cdc_provider.core.errors import CommandRefused, NotFound
from airflow_cdc_provider.core.spec.dag_plan import REPLICATOR_TAG
from airflow_cdc_provider.core.times import utc_now, utc_text

ENDED = frozenset({"success", "failed"})


@dataclass(frozen=True)
class ReplicatorDag:
    name: str
    paused: bool


def replicator_dags(search: str, names: Collection[str], without: Collection[str], limit: int) -> list[ReplicatorDag]:
    """The DAGs of replicators that Airflow has parsed, of ``names``, whose names contain ``search``, by name."""
    query = (
        select(DagModel.dag_id, DagModel.is_paused)
        .join(DagTag, DagTag.dag_id == DagModel.dag_id)
        .where(
            DagTag.name == REPLICATOR_TAG,
            DagModel.is_stale.is_(False),
            DagModel.dag_id.contains(search, autoescape=True),
        )
        .order_by(DagModel.dag_id)
    )
    with create_session() as session:
        found = (ReplicatorDag(name, bool(paused)) for name, paused in session.execute(query))
        return list(islice((one for one in found if one.name in names and one.name not in without), limit))


def require_runnable_dag(dag_id: str) -> None:
    """Raises NotFound (CLI008) if Airflow has not parsed the DAG yet, CommandRefused (CLI009) if the DAG is paused: its
    run would stay queued."""
    dag = DagModel.get_current(dag_id)
    if dag is None:
        raise NotFound.of(
            "CLI008", f"Airflow has no DAG {dag_id}", do="wait for the DAG processor, or check for import errors"
        )
    if dag.is_paused:
        raise CommandRefused.of("CLI009", f"the DAG {dag_id} is paused in Airflow", do=f"airflow dags unpause {dag_id}")


def running_tasks(dag_id: str) -> list[str]:
    """The tasks of a DAG that run now, as ``task of run``."""
    running = (TaskInstanceState.RUNNING, TaskInstanceState.RESTARTING)
    with create_session() as session:
        rows = (
            session.query(TaskInstance.task_id, TaskInstance.run_id)
            .filter(TaskInstance.dag_id == dag_id, TaskInstance.state.in_(running))
            .all()
        )
    return [f"{task_id} of {run_id}" for task_id, run_id in rows]


@dataclass(frozen=True)
class PastRun:
    """A run of a DAG, finished or not. ``kind``: manual, scheduled, backfill … Times are UTC in ISO 8601 format; empty
    before the run has started or ended."""

    run_id: str
    kind: str
    state: str
    started_at: str
    ended_at: str


def recent_runs(dag_id: str, limit: int, before: str = "") -> list[PastRun]:
    """The last runs, the newest first. ``before``: only those that were created before the run with this id."""
    query = select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.id.desc()).limit(limit)
    if before:
        other = select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == before)
        query = query.where(DagRun.id < other.scalar_subquery())
    with create_session() as session:
        return [
            PastRun(run.run_id, str(run.run_type), str(run.state), _text(run.start_date), _text(run.end_date))
            for run in session.scalars(query)
        ]


def _text(moment: datetime | None) -> str:
    return utc_text(moment) if moment else ""


def trigger_run(dag_id: str, by: DagRunTriggeredByType = DagRunTriggeredByType.CLI) -> str:
    """Trigger a manual run. Returns its id."""
    run_id = f"manual__{utc_now()}_{uuid.uuid4().hex[:6]}"
    trigger_dag(dag_id, triggered_by=by, run_id=run_id)
    return run_id


def trigger_run_once(dag_id: str, key: str, by: DagRunTriggeredByType) -> str:
    """As ``trigger_run``; the same key is the same run."""
    run_id = f"manual__{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    with contextlib.suppress(DagRunAlreadyExists):
        trigger_dag(dag_id, triggered_by=by, run_id=run_id)
    return run_id


def has_ended(dag_id: str, run_id: str) -> bool:
    """Also if Airflow does not know the run any more."""
    dag_runs = DagRun.find(dag_id=dag_id, run_id=run_id)
    return not dag_runs or str(dag_runs[0].state) in ENDED

"""The DAG that watches all replicators of an Airflow installation. It needs one file in the DAGs folder::

from airflow_cdc_provider.monitor_dag import build_monitor_dag

dag = build_monitor_dag(__file__)  # an Airflow DAG
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from airflow_cdc_provider.core.spec.dag_plan import TAG
from airflow_cdc_provider.operators.monitor import MonitorOperator

START_DATE = datetime(2020, 1, 1, tzinfo=UTC)
LONGEST = timedelta(minutes=10)
"""Of one run. A notifier that hangs must not stop the next one."""
DOC = "Notifies operators of late copies, from outside the runs of the replicators."


def build_monitor_dag(dag_file: str | Path, schedule: Any = "*/5 * * * *") -> DAG:
    """The DAG ``cdc_monitor``. ``schedule``: of its runs, as in any DAG."""
    with DAG(
        "cdc_monitor",
        description="late copies of all replicators",
        schedule=schedule,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags={TAG},
        doc_md=DOC,
    ) as dag:
        MonitorOperator(task_id="monitor", execution_timeout=LONGEST)
    dag.fileloc = str(dag_file)
    return dag

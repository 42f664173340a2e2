"""The API of replicators in this process, with Airflow's simple auth manager and a metadata database."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import delete

from airflow_cdc_provider.core.spec.dag_plan import REPLICATOR_TAG
from airflow_cdc_provider.ui import access
from airflow_cdc_provider.ui.app import API, create_app

ROLES = ("viewer", "user", "op", "admin")
ANONYMOUS = "anonymous"


@dataclass
class ApiClient:
    http: TestClient
    tokens: dict[str, str]

    def get(self, path: str, role: str = "viewer", **options: Any) -> Response:
        return self.http.get(f"{API}{path}", headers=self.headers(role), **options)

    def post(self, path: str, body: Any, role: str = "user", key: str | None = None, **headers: str) -> Response:
        """``key``: empty to send none."""
        if key is None:
            key = uuid.uuid4().hex
        sent = self.headers(role) | ({"Idempotency-Key": key} if key else {}) | headers
        return self.http.post(f"{API}{path}", json=body, headers=sent)

    def headers(self, role: str) -> dict[str, str]:
        return {} if role == ANONYMOUS else {"Authorization": f"Bearer {self.tokens[role]}"}


def migrate_database() -> None:
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, check=True, capture_output=True, env=dict(os.environ))


def add_dags(names: Iterable[str], paused: bool = False) -> None:
    """As the DAG processor does for a replicator that it has parsed."""
    with create_session() as session:
        session.merge(DagBundleModel(name="files"))
        session.flush()
        for name in names:
            session.merge(DagModel(dag_id=name, bundle_name="files", is_paused=paused, is_stale=False))
            session.merge(DagTag(name=REPLICATOR_TAG, dag_id=name))


def set_runs(dag_id: str, runs: Iterable[tuple[str, DagRunState, datetime, timedelta]]) -> None:
    """Replaces the runs of a DAG: id, state, start, and how long it took."""
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == dag_id))
        for run_id, state, at, took in runs:
            run = DagRun(dag_id, run_id=run_id, run_type=DagRunType.SCHEDULED, run_after=at, start_date=at, state=state)
            run.end_date = at + took
            session.add(run)


def api_client() -> ApiClient:
    """With all requests of the minute left, whatever tests before this one have sent."""
    for rate in (access.CHANGES, access.LIVE_READS):
        rate._recent.clear()
    with contextlib.redirect_stdout(io.StringIO()):  # its first start prints a password
        manager = init_auth_manager()
    users = {role: SimpleAuthManagerUser(username=f"{role}-name", role=role.upper()) for role in ROLES}
    tokens = {role: manager.generate_jwt(user) for role, user in users.items()}
    return ApiClient(TestClient(create_app(), raise_server_exceptions=False), tokens)

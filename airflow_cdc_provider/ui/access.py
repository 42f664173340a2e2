"""The guards of routes: every one asks Airflow's auth manager. Who may read a DAG reads its replicator; who may edit it
commands it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request, status

from airflow_cdc_provider.ui.rate import Rate

SAME_ORIGIN = frozenset({"same-origin", "none"})
CHANGES = Rate(60)
CSRF_HEADER = "Idempotency-Key"
"""A page of another origin cannot set it without the consent of this server, which never gives it."""

User = Annotated[BaseUser, Depends(get_user)]


def readable(replicator: str, user: User) -> str:
    """The replicator of the path. HTTP 403 if the user may not read its DAG, whether or not it exists."""
    return _require(user, replicator, "GET")


def editable(replicator: str, user: User, request: Request) -> str:
    """As ``readable``, for routes that change something."""
    require_same_origin(request)
    CHANGES.require(user.get_id())
    return _require(user, replicator, "PUT")


def readable_with_values(replicator: str, user: User) -> str:
    """As ``readable``, for routes that answer values of rows: they need what a command needs."""
    return _require(user, replicator, "PUT")


def readable_names(user: User) -> frozenset[str]:
    """The DAGs that the user may read."""
    return frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


def require_same_origin(request: Request) -> None:
    """HTTP 403 for a request that a page of another origin may have sent with the cookie of the user."""
    foreign = request.headers.get("Sec-Fetch-Site", "none") not in SAME_ORIGIN
    if foreign or CSRF_HEADER not in request.headers:
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, f"a request that changes something needs the header {CSRF_HEADER}"
        )


def require_connections(user: BaseUser, connections: Iterable[str]) -> None:
    """HTTP 403 for a connection that the user may not read."""
    for one in sorted(connections):
        details = ConnectionDetails(conn_id=one)
        if not get_auth_manager().is_authorized_connection(method="GET", details=details, user=user):
            raise HTTPException(status.HTTP_403_FORBIDDEN, f"no access to the connection {one}")


def _require(user: BaseUser, replicator: str, method: ResourceMethod) -> str:
    details = DagDetails(id=replicator, team_name=DagModel.get_team_name(replicator))
    if not get_auth_manager().is_authorized_dag(method=method, details=details, user=user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"no access to the DAG {replicator}")
    return replicator


Readable = Annotated[str, Depends(readable)]
Editable = Annotated[str, Depends(editable)]
ReadableWithValues = Annotated[str, Depends(readable_with_values)]
ReadableNames = Annotated[frozenset[str], Depends(readable_names)]

GUARDS = (get_user, readable, readable_with_values, editable, readable_names)
"""Every route depends on at least one of them."""

"""The guards of routes: every one asks Airflow's auth manager. Who may read a DAG reads its replicator; who may edit it
commands it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagDetails
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request, status
from fastapi.security import HTTPAuthorizationCredentials

from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.ui.rate import Rate
from airflow_cdc_provider.ui.texts import ReplicatorName

SAME_ORIGIN = frozenset({"same-origin", "none"})
CHANGES = Rate(60, "changes")
LIVE_READS = Rate(20, "requests that ask a source")
CSRF_HEADER = "Idempotency-Key"
"""A page of another origin cannot set it without the consent of this server, which never gives it."""

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_scheme)]


async def signed_in(request: Request, bearer: Bearer) -> BaseUser:
    """The user of Airflow. HTTP 401 without a valid login; the answer does not say what is wrong with it."""
    try:
        return await get_user(request, None, bearer)
    except HTTPException:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, "no valid login", {"WWW-Authenticate": "Bearer"}) from None


User = Annotated[BaseUser, Depends(signed_in)]


def readable(replicator: ReplicatorName, user: User) -> str:
    """The replicator of the path. Raises NotFound (API008) if the user may not read its DAG, whether or not it
    exists."""
    if not _may(user, replicator, "GET"):
        raise NotFound.of(
            "API008", f"there is no DAG {replicator} that you may read", do="ask for the right to read it in Airflow"
        )
    return replicator


def editable(replicator: Annotated[str, Depends(readable)], user: User, request: Request) -> str:
    """As ``readable``, for routes that change something. HTTP 403 if the user may only read the DAG."""
    require_same_origin(request)
    CHANGES.require(user.get_id())
    return _require_editable(user, replicator)


def readable_with_values(replicator: Annotated[str, Depends(readable)], user: User) -> str:
    """As ``readable``, for routes that answer values of rows: they need what a command needs."""
    return _require_editable(user, replicator)


def readable_live(replicator: Annotated[str, Depends(readable)], user: User) -> str:
    """As ``readable``, for routes that ask the source and the targets."""
    LIVE_READS.require(user.get_id())
    return replicator


def may_edit(replicator: ReplicatorName, user: User) -> bool:
    """Whether the user may command the replicator: for what a page offers."""
    return _may(user, replicator, "PUT")


def readable_names(user: User) -> frozenset[str]:
    """The DAGs that the user may read."""
    return frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


def require_same_origin(request: Request) -> None:
    """Refuses a request that a page of another origin may have sent with the cookie of the user: HTTP 403 if the
    browser says so, 428 without the header that only this origin can send."""
    if request.headers.get("Sec-Fetch-Site", "none") not in SAME_ORIGIN:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "a page of another origin changes nothing")
    if CSRF_HEADER not in request.headers:
        raise HTTPException(
            status.HTTP_428_PRECONDITION_REQUIRED, f"a request that changes something needs the header {CSRF_HEADER}"
        )


def require_connections(user: BaseUser, connections: Iterable[str]) -> None:
    """HTTP 403 for a connection that the user may not read."""
    for one in sorted(connections):
        details = ConnectionDetails(conn_id=one)
        if not get_auth_manager().is_authorized_connection(method="GET", details=details, user=user):
            raise HTTPException(status.HTTP_403_FORBIDDEN, f"no access to the connection {one}")


def _require_editable(user: BaseUser, replicator: str) -> str:
    if not _may(user, replicator, "PUT"):
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"no right to edit the DAG {replicator}")
    return replicator


def _may(user: BaseUser, replicator: str, method: ResourceMethod) -> bool:
    details = DagDetails(id=replicator, team_name=DagModel.get_team_name(replicator))
    return get_auth_manager().is_authorized_dag(method=method, details=details, user=user)


Readable = Annotated[str, Depends(readable)]
Editable = Annotated[str, Depends(editable)]
ReadableWithValues = Annotated[str, Depends(readable_with_values)]
ReadableLive = Annotated[str, Depends(readable_live)]
MayEdit = Annotated[bool, Depends(may_edit)]
ReadableNames = Annotated[frozenset[str], Depends(readable_names)]

OF_A_REPLICATOR = (readable, readable_live, readable_with_values, editable)
"""Every route with a replicator in its path depends on at least one of them."""
GUARDS = (signed_in, readable_names, *OF_A_REPLICATOR)
"""Every route depends on at least one of them."""

"""From an Airflow connection to what connectors, targets and staging are given; its secrets are masked on the way."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.definition import Definition


def find_connection(connection_id: str) -> Connection:
    """The Airflow connection. Raises CheckFailed (CON001) where there is none of this name."""
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise CheckFailed(
            Problem(
                "CON001",
                f"Airflow has no connection {connection_id}",
                where=f"connection {connection_id}",
                allowed="the id of a connection in Airflow's metadata, environment or secrets backend",
                do=f"airflow connections add {connection_id} …, or name another connection in the YAML",
            )
        ) from None


def connection_info(connection_id: str) -> ConnectionInfo:
    """The fields of a connection; an empty id gives an empty one. Raises CheckFailed: CON001 unknown id, CON002 an
    ``extra`` that is not a JSON object."""
    if not connection_id:
        return ConnectionInfo()
    found = find_connection(connection_id)
    extra = _extra(connection_id, found)
    if found.password:
        mask_secret(found.password)
    mask_secret(extra)
    return ConnectionInfo(
        connection_id=connection_id,
        host=found.host or "",
        port=found.port,
        login=found.login or "",
        password=found.password or "",
        schema=found.schema or "",
        extra=extra,
    )


def secrets_of(definition: Definition) -> Secrets:
    """The connections of both ends and of staging."""
    return Secrets(
        source=connection_info(definition.source.connection),
        target=connection_info(definition.target.connection),
        staging=connection_info(definition.staging.connection),
    )


def _extra(connection_id: str, found: Connection) -> dict[str, Any]:
    """Airflow's own reading of a damaged ``extra`` is an empty one; a wrong setting must not be lost in silence."""
    try:
        extra = json.loads(found.extra or "{}")
    except ValueError:
        extra = None
    if isinstance(extra, dict):
        return extra
    raise CheckFailed(
        Problem(
            "CON002",
            f"the extra of connection {connection_id} cannot be read",
            where=f"connection {connection_id}",
            allowed="a JSON object, or nothing",
            do="mend the extra of the connection",
        )
    )

"""Airflow connections as ConnectionInfo, for connectors, targets and staging. Secrets are masked in the task log."""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_cdc_provider.connectors.registry import registry_connection
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import STAGE_CONNECTION, Definition, Target

TEST_WITH = "test_with"
"""A key of the extra that only tests of the connection read: what the YAML otherwise says about the system."""


def get_connection(connection_id: str) -> Connection:
    """The Airflow connection. Raises CheckFailed (CON001) if there is none of this id."""
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise CheckFailed.of(
            "CON001",
            f"Airflow has no connection {connection_id}",
            where=f"connection {connection_id}",
            allowed="a connection in Airflow's metadata database, environment variables or secrets backend",
            do=f"airflow connections add {connection_id} …, or set another connection in the YAML",
        ) from None


def connection_info(connection_id: str) -> ConnectionInfo:
    """The fields of a connection; empty for an empty id. Raises CheckFailed: CON001 unknown id, CON002 ``extra`` is not
    a JSON object."""
    if not connection_id:
        return ConnectionInfo()
    connection = get_connection(connection_id)
    extra = _extra(connection_id, connection)
    if connection.password:
        mask_secret(connection.password)
    mask_secret(extra)
    return ConnectionInfo(
        connection_id=connection_id,
        host=connection.host or "",
        port=connection.port,
        login=connection.login or "",
        password=connection.password or "",
        schema=connection.schema or "",
        extra={name: value for name, value in extra.items() if name != TEST_WITH},
    )


def options_of_test(connection_id: str) -> Any:
    """The value of TEST_WITH in a connection; None if it has none. Raises CheckFailed as ``connection_info``."""
    return _extra(connection_id, get_connection(connection_id)).get(TEST_WITH)


def secrets_of(definition: Definition) -> Secrets:
    """The connections of source, targets and staging, and, if they are used, of the stage of a target, the schema
    registry and the key of hashes. Raises CheckFailed as ``connection_info``; for the connections of targets, only if
    no target has usable ones."""
    targets = {target.name: _target_secrets(target) for target in definition.all_targets}
    if all(target.problems for target in targets.values()):
        raise CheckFailed(*(problem for target in targets.values() for problem in target.problems))
    own = TargetSecrets() if definition.target is None else targets[definition.target.name]
    return Secrets(
        source=connection_info(definition.source.connection),
        target=own.target,
        staging=connection_info(definition.staging.connection),
        stage=own.stage,
        targets=targets if definition.targets else {},
        registry=connection_info(registry_connection(definition)),
        hash=connection_info(definition.hash_connection),
    )


def connection_ids(definition: Definition) -> frozenset[str]:
    """The connections whose secrets ``secrets_of`` reads."""
    targets = definition.all_targets
    named = (
        definition.source.connection,
        definition.staging.connection,
        definition.hash_connection,
        registry_connection(definition),
        *(target.connection for target in targets),
        *(str(target.options.get(STAGE_CONNECTION, "")) for target in targets),
    )
    return frozenset(filter(None, named))


def _target_secrets(target: Target) -> TargetSecrets:
    try:
        return TargetSecrets(
            connection_info(target.connection), connection_info(str(target.options.get(STAGE_CONNECTION, "")))
        )
    except CheckFailed as error:
        return TargetSecrets(problems=error.problems)


def _extra(connection_id: str, connection: Connection) -> dict[str, Any]:
    """Airflow reads an invalid ``extra`` as empty. Here it is an error, so that no setting is ignored."""
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if isinstance(extra, dict):
        return extra
    raise CheckFailed.of(
        "CON002",
        f"the extra of connection {connection_id} is not valid",
        where=f"connection {connection_id}",
        allowed="a JSON object, or empty",
        do="correct the extra of the connection",
    )

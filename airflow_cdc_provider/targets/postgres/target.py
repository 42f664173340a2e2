"""The PostgreSQL target."""

from __future__ import annotations

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.postgres.options import PostgresTargetOptions
from airflow_cdc_provider.targets.postgres.server import PostgresServer


class PostgresTarget(DatabaseTarget):
    """Tables in one schema of the connection's database."""

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        options = from_plain(PostgresTargetOptions, dict(target.options))
        super().__init__(PostgresServer(connection, options.schema, replicator), replicator, log)

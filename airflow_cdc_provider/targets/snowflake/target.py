"""The Snowflake target."""

from __future__ import annotations

from typing import ClassVar

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database.staging import prepare_staging
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.snowflake.options import SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.server import SnowflakeServer


class SnowflakeTarget(DatabaseTarget):
    """Tables in one schema of the connection's account. ``stage``: the connection of an external stage."""

    has_stage: ClassVar[bool] = True

    def __init__(
        self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog, stage: ConnectionInfo
    ) -> None:
        options = from_plain(SnowflakeOptions, dict(target.options))
        super().__init__(SnowflakeServer(connection, options, replicator, stage), replicator, log)

    def settle_swaps(self, target_table: str) -> None:
        """Drops such copies."""
        prepare_staging(self.server, target_table)

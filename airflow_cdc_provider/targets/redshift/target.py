"""The Redshift target."""

from __future__ import annotations

from typing import ClassVar

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database.stage import Stage
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.redshift.options import RedshiftOptions
from airflow_cdc_provider.targets.redshift.server import RedshiftServer


class RedshiftTarget(DatabaseTarget):
    """Tables in one schema of the connection's database. ``stage``: the connection of the bucket."""

    has_stage: ClassVar[bool] = True

    def __init__(
        self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog, stage: ConnectionInfo
    ) -> None:
        options = from_plain(RedshiftOptions, dict(target.options))
        server = RedshiftServer(connection, options, Stage(options.stage, stage), replicator)
        super().__init__(server, replicator, log)

"""The MySQL and MariaDB target."""

from __future__ import annotations

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.database.target import DatabaseTarget
from airflow_cdc_provider.targets.mysql.options import MysqlTargetOptions
from airflow_cdc_provider.targets.mysql.server import MysqlServer
from airflow_cdc_provider.targets.mysql.sql import MysqlSql


class MysqlTarget(DatabaseTarget):
    """Tables in one database of the connection's server."""

    server: MysqlServer

    def __init__(self, target: Target, connection: ConnectionInfo, replicator: str, log: ChangeLog) -> None:
        options = from_plain(MysqlTargetOptions, dict(target.options))
        super().__init__(MysqlServer(connection, options.schema, replicator, options.floats), replicator, log)

    @property
    def alteration_sql(self) -> MysqlSql:
        """The collation, which differs between the products, is in no statement: texts are never widened."""
        return MysqlSql(self.server.schema, self.server.floats)

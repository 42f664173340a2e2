"""The settings by which a connector of Debezium connects to an embedded server."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres


def connection_settings(server: EmbeddedPostgres | EmbeddedMariaDB) -> dict[str, str]:
    return {
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
    }

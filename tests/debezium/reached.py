"""How a connector of Debezium reaches a server of ours."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres


def reached(server: EmbeddedPostgres | EmbeddedMariaDB) -> dict[str, str]:
    return {
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
    }

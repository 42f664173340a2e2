"""Spark's JDBC drivers apply the TLS settings of a connection as the libraries without a JVM do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox import mariadb as mariadb_server
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.targets.database.server import Server
from airflow_cdc_provider.targets.mysql.server import MysqlServer
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from tests.certificates import certificate_files
from tests.mariadb import TLS, embedded
from tests.tls_front import tls_front

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def read(spark: SparkSession, server: Server) -> Any:
    jdbc = server.jdbc()
    options = {"url": jdbc.url, "driver": jdbc.driver, "user": jdbc.user, "password": jdbc.password}
    return spark.read.format("jdbc").options(query="SELECT 1 AS one", **options).load().first()


def test_postgresql_is_verified_by_certificate_and_name(spark: SparkSession, postgres: EmbeddedPostgres) -> None:
    with certificate_files({}) as files, tls_front(postgres.port, *files) as port:

        def at(host: str, extra: Mapping[str, Any]) -> PostgresServer:
            info = ConnectionInfo("w", host, port, postgres.user, postgres.password, "postgres", extra)
            return PostgresServer(info, "public", "shop")

        named = {"sslmode": "require", "sslrootcert": str(files[0])}
        assert read(spark, at(postgres.host, named)) == (1,)
        assert read(spark, at("localhost", {"sslmode": "require", "tls_verify": False})) == (1,)
        with pytest.raises(Exception, match="could not be verified"):
            read(spark, at("localhost", named))
        with pytest.raises(Exception, match="PKIX"):
            read(spark, at(postgres.host, {"sslmode": "require"}))


def test_mariadb_is_verified_by_certificate_and_name(spark: SparkSession) -> None:
    server = embedded(require_secure_transport="ON", **TLS)
    with certificate_files(mariadb_server.run_as()) as (own, key):
        server.settings |= {"ssl-cert": str(own), "ssl-key": str(key)}
        with server:

            def at(host: str, extra: Mapping[str, Any]) -> MysqlServer:
                info = ConnectionInfo("w", host, server.port, server.user, server.password, extra=extra)
                return MysqlServer(info, "mysql", "shop")

            named = {"ssl": {"ca": str(own)}}
            assert read(spark, at(server.host, named)) == (1,)
            assert read(spark, at("localhost", {"ssl": True, "tls_verify": False})) == (1,)
            with pytest.raises(Exception, match="hostname verification failed"):
                read(spark, at("localhost", named))
            with pytest.raises(Exception, match="certificate"):
                read(spark, at(server.host, {"ssl": True}))

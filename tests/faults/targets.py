"""The target of a system under test: its definition, secrets and schema, and what is done to it beside the product."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import psycopg
import pymysql
import requests
import snowflake.connector

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.copies import DEFAULT_TARGET
from airflow_cdc_provider.sandbox.bigquery import PROJECT
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.redshift import USER
from airflow_cdc_provider.sandbox.spanner import INSTANCE
from tests.buckets import Moto
from tests.faults.checker.bigquery import Dataset
from tests.faults.checker.checker import Reader
from tests.faults.checker.database import PollingReader, Server
from tests.faults.checker.delta import DeltaReader
from tests.faults.checker.iceberg import IcebergReader
from tests.faults.checker.snowflake import Schema
from tests.faults.checker.spanner import Database
from tests.faults.servers import Servers
from tests.spanner_client import open_database

SNOWFLAKE_DATABASE = "COPIES"


class SystemTarget(ABC):
    """``name``: of the system; ``folder``: its own."""

    def __init__(self, name: str, folder: Path, servers: Servers) -> None:
        self.schema = f"copy_{name}"
        self.name = name
        self.folder = folder
        self.servers = servers

    shared = False
    """Whether source tables have a common target table."""

    @abstractmethod
    def definition(self) -> Target: ...

    @abstractmethod
    def reader(self) -> Reader: ...

    def definitions(self) -> tuple[Target, ...]:
        return (self.definition(),)

    def readers(self) -> dict[str, Reader]:
        """By the name of the target, which is empty for the default one."""
        return {"": self.reader()}

    def secrets(self, source: ConnectionInfo) -> Secrets:
        return Secrets(source=source)

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        """While it is entered, the target has a schema for the system."""
        yield

    @property
    def canaries(self) -> list[str]:
        """Secrets that no log may contain."""
        return []


@runtime_checkable
class HasSessions(Protocol):
    """A target in which the session of a frozen process keeps locks for some time."""

    def end_sessions_of(self, pid: int) -> None:
        """Ends those of the process that are idle in a transaction, as the server itself does after that time."""


@runtime_checkable
class KeepsSessions(Protocol):
    """A target that does not detect the end of a client."""

    def forget_clients(self) -> None:
        """Sessions of processes that have ended have been idle for the time after which the product ends them."""


class DeltaTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("delta", location=str(self.folder / "lake"))

    def reader(self) -> Reader:
        return DeltaReader(self.folder / "lake")


class IcebergTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("iceberg", location=str(self.folder / "lake"))

    def reader(self) -> Reader:
        return IcebergReader(self.folder / "lake")


class PostgresTarget(SystemTarget):
    """On the server of the source, in another database."""

    owner = "postgres"

    def definition(self) -> Target:
        return Target("postgres", options={"schema": self.schema})

    @property
    def postgres(self) -> EmbeddedPostgres:
        return self.servers.postgres

    def secrets(self, source: ConnectionInfo) -> Secrets:
        server = self.postgres
        info = ConnectionInfo("warehouse", server.host, server.port, server.user, server.password, schema="postgres")
        return Secrets(source=source, target=info)

    def reader(self) -> Reader:
        server = self.postgres
        options = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return PollingReader(Server(self.definition().type, self.schema, options | {"dbname": "postgres"}))

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        self.execute(f"CREATE SCHEMA {self.schema} AUTHORIZATION {self.owner}")
        yield
        self.execute(f"DROP SCHEMA {self.schema} CASCADE")

    def end_sessions_of(self, pid: int) -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
        self.execute(query + " AND state = 'idle in transaction'", f"cdc:{self.name}:%.{pid}")

    def execute(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []


class RedshiftTarget(PostgresTarget):
    """Its reader and its administrator use the PostgreSQL behind the stand-in."""

    owner = USER

    def definition(self) -> Target:
        stage = f"s3://{Moto.LAKE}/{self.schema}"
        return Target("redshift", options={"schema": self.schema, "stage": stage, "stage_connection": "objects"})

    @property
    def postgres(self) -> EmbeddedPostgres:
        return self.servers.redshift.postgres

    def secrets(self, source: ConnectionInfo) -> Secrets:
        return Secrets(source=source, target=self.servers.redshift.connection, stage=self.servers.store.connection)

    @property
    def canaries(self) -> list[str]:
        return [self.servers.redshift.password, self.servers.store.connection.password]


class MysqlTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("mysql", options={"schema": self.schema})

    def secrets(self, source: ConnectionInfo) -> Secrets:
        server = self.servers.mariadb
        info = ConnectionInfo("warehouse", server.host, server.port, server.user, server.password, schema=self.schema)
        return Secrets(source=source, target=info)

    def reader(self) -> Reader:
        return PollingReader(Server("mysql", self.schema, self._options()))

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        self._execute(f"CREATE SCHEMA {self.schema}")
        yield
        self._execute(f"DROP SCHEMA {self.schema}")

    def end_sessions_of(self, pid: int) -> None:
        idle = "SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND time >= 1"
        with pymysql.connect(**self._options(), autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute(idle)
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")

    @property
    def canaries(self) -> list[str]:
        return [self.servers.mariadb.password]

    def _options(self) -> dict[str, Any]:
        server = self.servers.mariadb
        return {"host": server.host, "port": server.port, "user": server.user, "password": server.password}

    def _execute(self, statement: str) -> None:
        with pymysql.connect(**self._options(), autocommit=True) as connection:
            connection.cursor().execute(statement)


class SnowflakeTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("snowflake", options={"database": SNOWFLAKE_DATABASE, "schema": self.schema.upper()})

    def secrets(self, source: ConnectionInfo) -> Secrets:
        return Secrets(source=source, target=self.servers.snowflake.connection)

    def reader(self) -> Reader:
        return PollingReader(Schema(SNOWFLAKE_DATABASE, self.schema.upper(), self._options()))

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        with snowflake.connector.connect(**self._options()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {SNOWFLAKE_DATABASE}")
            cursor.execute(f"CREATE SCHEMA {SNOWFLAKE_DATABASE}.{self.schema.upper()}")
        yield

    def end_sessions_of(self, pid: int) -> None:
        """To the stand-in, sessions without a statement at this moment have been idle for an hour. The product ends
        those that are in its way."""
        self.forget_clients()

    def forget_clients(self) -> None:
        requests.post(f"http://127.0.0.1:{self.servers.snowflake.port}/idle", timeout=10)

    def _options(self) -> dict[str, Any]:
        info = self.servers.snowflake.connection
        return {"user": info.login, "password": info.password, "port": info.port, **info.extra}


class BigQueryTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("bigquery", options={"dataset": self.schema})

    def secrets(self, source: ConnectionInfo) -> Secrets:
        return Secrets(source=source, target=self.servers.bigquery.connection)

    @property
    def dataset(self) -> Dataset:
        return Dataset(self.servers.bigquery.url, PROJECT, self.schema)

    def reader(self) -> Reader:
        return PollingReader(self.dataset)

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        self.dataset.execute(f"CREATE SCHEMA `{PROJECT}`.{self.schema}")
        yield
        self.dataset.execute(f"DROP SCHEMA `{PROJECT}`.{self.schema} CASCADE")


class SpannerTarget(SystemTarget):
    def definition(self) -> Target:
        return Target("spanner", options={"instance": INSTANCE, "database": self.name})

    def secrets(self, source: ConnectionInfo) -> Secrets:
        return Secrets(source=source, target=self.servers.spanner.connection)

    def reader(self) -> Reader:
        return PollingReader(Database(self.database))

    @cached_property
    def database(self) -> Any:
        return open_database(self.servers.spanner.port, self.name)

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        yield
        self.database.drop()


class DeltaAndPostgresTarget(PostgresTarget):
    """Two targets of one replicator. A session that a frozen process keeps is one of PostgreSQL."""

    NAME = "warehouse"

    def definitions(self) -> tuple[Target, ...]:
        lake = Target("delta", location=str(self.folder / "lake"))
        return (replace(self.definition(), name=self.NAME), lake)

    def readers(self) -> dict[str, Reader]:
        return {"": DeltaReader(self.folder / "lake"), self.NAME: self.reader()}

    def secrets(self, source: ConnectionInfo) -> Secrets:
        warehouse = super().secrets(source).target
        return Secrets(source, targets={self.NAME: TargetSecrets(warehouse), DEFAULT_TARGET: TargetSecrets()})


class SharedDeltaTarget(DeltaTarget):
    shared = True


class SharedIcebergTarget(IcebergTarget):
    shared = True


class SharedPostgresTarget(PostgresTarget):
    shared = True


class SharedMysqlTarget(MysqlTarget):
    shared = True


TARGETS: dict[str, type[SystemTarget]] = {
    "delta and postgres": DeltaAndPostgresTarget,
    "shards in delta": SharedDeltaTarget,
    "shards in iceberg": SharedIcebergTarget,
    "shards in mysql": SharedMysqlTarget,
    "shards in postgres": SharedPostgresTarget,
    "bigquery": BigQueryTarget,
    "delta": DeltaTarget,
    "iceberg": IcebergTarget,
    "mysql": MysqlTarget,
    "postgres": PostgresTarget,
    "redshift": RedshiftTarget,
    "snowflake": SnowflakeTarget,
    "spanner": SpannerTarget,
}

"""Source systems for commands: each has tables that are ready, and tables that are not, for different reasons."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import psycopg
import pymysql

from airflow_cdc_provider import connectors
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import Simulator
from tests.connectors.kafka_topics import Topics
from tests.connectors.kafka_topics import messages as kafka_messages
from tests.connectors.sqlserver_database import Shop
from tests.connectors.test_files_source import line
from tests.mariadb import IS_MYSQL, embedded, series
from tests.simulators.sqlserver import source as simulated
from tests.simulators.sqlserver.tables import Col

POSTGRES = """
CREATE TABLE good (id int PRIMARY KEY, name text);
CREATE TABLE dated (id int PRIMARY KEY, until date, price numeric(10,2));
CREATE TABLE odd (id int PRIMARY KEY, _cdc_note text, "Name" text, name text);
CREATE TABLE keyless (a int);
CREATE TABLE fleeting (id int PRIMARY KEY);
ALTER TABLE fleeting SET UNLOGGED;
CREATE TABLE unpublished (id int PRIMARY KEY);
CREATE TABLE computed (doc jsonb, id text GENERATED ALWAYS AS (doc->>'id') STORED PRIMARY KEY);
CREATE VIEW seen AS SELECT * FROM good;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER far FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE remote (id int) SERVER far;
CREATE PUBLICATION cdc FOR TABLE good, dated, odd, keyless, computed;
INSERT INTO good SELECT n, 'name ' || n FROM generate_series(1, 5000) n;
ANALYZE;
"""
POLLED = """
CREATE TABLE good (id int PRIMARY KEY, changed_at timestamptz NOT NULL);
CREATE INDEX ON good (changed_at);
CREATE VIEW seen AS SELECT * FROM good;
CREATE TABLE other (id int PRIMARY KEY, modified timestamptz NOT NULL);
CREATE INDEX ON other (modified);
CREATE TABLE more (id int PRIMARY KEY, changed_at timestamptz);
CREATE INDEX ON more (changed_at);
CREATE TABLE unindexed (id int PRIMARY KEY, changed_at timestamptz);
CREATE TABLE timeless (id int PRIMARY KEY);
CREATE TABLE keyless (changed_at timestamptz NOT NULL);
CREATE INDEX ON keyless (changed_at);
INSERT INTO good SELECT n, now() FROM generate_series(1, 5000) n;
ANALYZE;
"""
MARIADB = (
    "CREATE TABLE good (id int PRIMARY KEY, name varchar(20))",
    "CREATE TABLE dated (id varchar(600) PRIMARY KEY, until date)",
    "CREATE TABLE odd (id int PRIMARY KEY, word varchar(9) CHARACTER SET geostd8)",
    "CREATE VIEW seen AS SELECT * FROM good",
    *(() if IS_MYSQL else ("CREATE TABLE kept (id int PRIMARY KEY) WITH SYSTEM VERSIONING", "CREATE SEQUENCE numbers")),
    "CREATE TABLE keyless (a int)",
    "CREATE TABLE child (id int PRIMARY KEY, good int REFERENCES good (id) ON DELETE CASCADE)",
    f"INSERT INTO good SELECT seq, seq FROM {series(5000)}",
    "ANALYZE TABLE good",
)


@dataclass(frozen=True)
class SourceSystem:
    """``source``: the keys of the YAML. ``connections``: Airflow's, by id. ``missing``: the name of a table that does
    not exist. ``good``: the tables that can be copied, some without a column."""

    source: dict[str, Any]
    connections: dict[str, dict[str, Any]]
    tables: tuple[str, ...]
    missing: str
    good: frozenset[str]
    rules: tuple[dict[str, Any], ...] = ()

    def rows(self, *, with_missing: bool = True) -> list[dict[str, Any]]:
        """The rules of a definition of all tables."""
        missing = ({"source": self.missing},) if with_missing else ()
        named = {rule["source"] for rule in self.rules}
        return [*self.rules, *({"source": t} for t in self.tables if t not in named), *missing]


@dataclass
class Servers:
    """Started on first use, for a module of tests."""

    stack: ExitStack
    folder: Path
    _made: dict[str, SourceSystem] = field(default_factory=dict)
    _postgres: EmbeddedPostgres | None = None
    _mariadb: EmbeddedMariaDB | None = None

    @property
    def postgres(self) -> EmbeddedPostgres:
        if self._postgres is None:
            self._postgres = self.stack.enter_context(EmbeddedPostgres({}))
        return self._postgres

    @property
    def mariadb(self) -> EmbeddedMariaDB:
        if self._mariadb is None:
            self._mariadb = self.stack.enter_context(embedded())
        return self._mariadb

    def system(self, name: str) -> SourceSystem:
        if name not in self._made:
            self._made[name] = SYSTEMS[name](self)
        return self._made[name]

    def database(self, name: str, sql: str) -> dict[str, Any]:
        """The fields of the connection."""
        server = self.postgres
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(server.dsn(name), autocommit=True) as connection:
            for statement in filter(str.strip, sql.split(";")):
                connection.execute(statement.encode())
        extra = {"sslmode": "disable"}
        return {
            "conn_type": "postgres", "host": server.host, "port": server.port, "schema": name,
            "login": "postgres", "password": server.password, "extra": extra,
        }  # fmt: skip


def _postgres(servers: Servers) -> SourceSystem:
    connection = servers.database("shop", POSTGRES)
    tables = ("good", "dated", "odd", "keyless", "fleeting", "unpublished", "computed", "seen", "remote")
    return SourceSystem(
        {"type": "postgres", "connection": "shop_db", "publication": "cdc"},
        {"shop_db": connection},
        tuple(f"public.{table}" for table in tables),
        "public.absent",
        frozenset({"public.good", "public.dated", "public.odd"}),
    )


def _jdbc_poll(servers: Servers) -> SourceSystem:
    connection = servers.database("polled", POLLED)
    source = {
        "type": "jdbc_poll", "connection": "polled_db", "driver": "postgresql+psycopg",
        "timestamp_column": "changed_at", "timestamp_columns": {"public.other": "modified"}, "key_audit": "1d",
    }  # fmt: skip
    tables = ("good", "other", "more", "unindexed", "timeless", "keyless", "seen")
    return SourceSystem(
        source,
        {"polled_db": connection},
        tuple(f"public.{table}" for table in tables),
        "public.absent",
        frozenset({"public.good", "public.other", "public.more"}),
    )


def mariadb_connection(server: EmbeddedMariaDB, schema: str = "") -> dict[str, Any]:
    return {
        "conn_type": "mysql", "host": server.host, "port": server.port, "login": server.user,
        "password": server.password, "schema": schema,
    }  # fmt: skip


def _mysql(servers: Servers) -> SourceSystem:
    server = servers.mariadb
    with pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password) as connection:
        cursor = connection.cursor()
        for statement in ("CREATE DATABASE shop", "USE shop", *MARIADB):
            cursor.execute(statement)
    kinds = () if IS_MYSQL else ("kept", "numbers")
    return SourceSystem(
        {"type": "mysql", "connection": "shop_mysql", "databases": ["shop"]},
        {"shop_mysql": mariadb_connection(server)},
        tuple(f"shop.{table}" for table in ("good", "dated", "odd", "keyless", "child", "seen", *kinds)),
        "shop.absent",
        frozenset({"shop.good", "shop.dated", "shop.odd"}),
    )


def _sqlserver(servers: Servers) -> SourceSystem:
    folder = servers.folder / "sqlserver"
    folder.mkdir()
    shop = Shop(folder)
    shop.table("dbo.good", Col("id", "int", nullable=False), Col("name", "nvarchar(9)"))
    shop.table("dbo.odd", Col("id", "int", nullable=False), Col("v", "sql_variant"))
    shop.table("dbo.keyless", Col("id", "int", nullable=False), key=())
    shop.engine.create_table("dbo.uncaptured", [Col("id", "int", nullable=False)], ("id",))
    shop.sleep(1)
    properties = {"conn_type": "mssql", "host": str(shop.engine.folder), "extra": shop.engine.properties}
    return SourceSystem(
        {"type": "sqlserver", "connection": "shop_mssql"},
        {"shop_mssql": properties},
        ("dbo.good", "dbo.odd", "dbo.keyless", "dbo.uncaptured"),
        "dbo.absent",
        frozenset({"dbo.good", "dbo.odd"}),
    )


def _org(servers: Servers) -> tuple[SalesforceOrg, dict[str, Any]]:
    org = servers.stack.enter_context(SalesforceOrg(keepalive_s=0.05))
    org.load("Account", [{"Name": f"A{n}"} for n in range(20)])
    extra = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    return org, {"conn_type": "salesforce", "extra": extra}


def _salesforce(servers: Servers) -> SourceSystem:
    org, connection = _org(servers)
    source = {
        "type": "salesforce", "connection": "crm", "pubsub_endpoint": org.pubsub_endpoint, "pubsub_tls": False,
    }  # fmt: skip
    filtered = {"source": "Contact", "where": [{"column": "LastName", "op": "=", "value": "x"}]}
    tables = ("Account", "Contact", "Invoice__c")
    return SourceSystem(source, {"crm": connection}, tables, "Absent__c", frozenset(tables), (filtered,))


def _salesforce_poll(servers: Servers) -> SourceSystem:
    _, connection = _org(servers)
    source = {
        "type": "salesforce_poll", "connection": "crm_poll", "objects": ["Account", "Contact", "Absent__c"],
        "timestamp_columns": {"Contact": "LastName"}, "key_audit": "1d",
    }  # fmt: skip
    return SourceSystem(
        source, {"crm_poll": connection}, ("Account", "Contact"), "Absent__c", frozenset({"Account", "Contact"})
    )


def _debezium(servers: Servers) -> SourceSystem:
    folder = servers.folder / "events"
    folder.mkdir()
    setup = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
    history = Simulator(Random("files"), moves=True, late_check=False).history(8)
    messages = list(DebeziumEncoder(setup, Random(1)).messages(history))
    file = folder / "events.jsonl"
    file.write_text("\n".join(map(line, messages)))
    os.utime(file, (time.time() - 3600,) * 2)
    source = {"type": "files", "format": "debezium", "location": str(folder), "topic_prefix": "p"}
    return SourceSystem(source, {}, ("d.t",), "d.absent", frozenset({"d.t"}))


def _kafka(servers: Servers) -> SourceSystem:
    """A topic with events, and one without."""
    broker = servers.stack.enter_context(EmbeddedKafka())
    topics = Topics(broker, "p")
    topics.make("empty")
    topics.send(topics.make("d.t"), kafka_messages())
    source = {"type": "kafka", "connection": "broker", "format": "debezium", "topics": ["p.*"], "topic_prefix": "p"}
    connection = {"conn_type": "kafka", "extra": broker.client}
    return SourceSystem(source, {"broker": connection}, ("d.t",), "d.absent", frozenset({"d.t"}))


SYSTEMS: dict[str, Callable[[Servers], SourceSystem]] = {
    "postgres": _postgres,
    "mysql": _mysql,
    "sqlserver": _sqlserver,
    "salesforce": _salesforce,
    "salesforce_poll": _salesforce_poll,
    "jdbc_poll": _jdbc_poll,
    "files": _debezium,
    "kafka": _kafka,
}
SLOW = frozenset({"kafka"})
"""Systems that are not started in every run."""


@contextmanager
def running(folder: Path) -> Iterator[Servers]:
    with ExitStack() as stack, patch.dict(connectors.SOURCES, {"sqlserver": simulated.NAME}):
        yield Servers(stack, folder)


def connection_variables(connections: dict[str, dict[str, Any]]) -> dict[str, str]:
    """As Airflow finds connections in its environment."""
    return {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections.items()}

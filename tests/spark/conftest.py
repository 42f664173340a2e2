"""One Spark session and one PostgreSQL server for the whole layer."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.sandbox.bigquery import EmbeddedBigQuery
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.redshift import EmbeddedRedshift
from airflow_cdc_provider.sandbox.server import EmbeddedServer
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.sandbox.spanner import EmbeddedSpanner
from spark_jobs.runtime.sessions import TARGET_SETTINGS, build_session
from tests.buckets import Moto
from tests.mariadb import embedded
from tests.spark.databases import Database, new_schema
from tests.spark.replicator import JAVA_OPTIONS, LOCAL
from tests.waiting import until

GROUPS = ("delta", "iceberg", "mysql", "postgres", "s3", "gs", "abfss", "iceberg_gs", "iceberg_abfss")
LONG_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m"
"""With the first compiler alone, Java reserves 48 MB for compiled code; a few dozen tests fill that, and after that
it compiles the same code again and again."""

SOCKETS = "Exception ignored in. <socket.socket"

Server = TypeVar("Server", bound=EmbeddedServer)


SLOWEST_FIRST = (
    "test_histories.py",
    "test_resync.py",
    "test_commits.py",
    "test_key_audits.py",
    "test_salesforce_pipeline.py",
    "test_dirty_keys.py",
    "test_merge_keyed.py",
    "test_postgres_statements.py",
    "test_verify.py",
    "test_delta_direct.py",
    "test_hostile_texts.py",
    "test_snowflake_commits.py",
    "test_buckets.py",
    "test_bigquery_jobs.py",
    "test_redshift_commits.py",
    "test_late_files.py",
    "test_copies.py",
    "test_salesforce_poll_pipeline.py",
    "test_altered_lake_columns.py",
    "test_questions.py",
    "test_merge_schemas.py",
    "test_quarantine.py",
    "test_rewind.py",
    "test_fold_in_driver.py",
    "test_slices.py",
    "test_shards.py",
    "test_altered_target_columns.py",
    "test_listed_tables.py",
)
"""Files of more than 30 seconds. A worker that gets one at the end leaves the other one without work."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the files. PySpark leaves the sockets of its threads to the garbage collector."""
    ranks = {name: rank for rank, name in enumerate(SLOWEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(f"ignore:{SOCKETS}:pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session", autouse=True)
def spark() -> Iterator[SparkSession]:
    """Exists before the first test, also if that test does not use it: a job that runs in this process would create
    a session of its own, without any jars."""
    session = new_session()
    yield session
    session.stop()


def new_session() -> SparkSession:
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs its end after its reader is gone
    conf = {
        **LOCAL,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {LONG_LIFE}",
        "spark.driver.extraClassPath": ":".join(map(str, class_path(GROUPS))),
        "spark.sql.shuffle.partitions": "2",
        # Both targets in one application: neither may disturb the other.
        "spark.sql.extensions": ",".join(
            TARGET_SETTINGS[kind]["spark.sql.extensions"] for kind in ("delta", "iceberg")
        ),
    }
    return build_session("tests", ["delta"], conf)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[EmbeddedMariaDB]:
    with embedded() as server:
        yield server


@pytest.fixture(scope="session")
def warehouse_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    with Moto(tmp_path_factory.mktemp("store") / "moto.log") as store:
        yield store


@pytest.fixture(scope="session")
def redshift_server(warehouse_store: Moto) -> Iterator[EmbeddedRedshift]:
    with EmbeddedRedshift(warehouse_store.connection) as server:
        yield server


@pytest.fixture(scope="session")
def snowflake_server(warehouse_store: Moto) -> Iterator[EmbeddedSnowflake]:
    with where_installed(partial(EmbeddedSnowflake, warehouse_store.connection)) as server:
        yield server


@pytest.fixture(scope="session")
def bigquery_server() -> Iterator[EmbeddedBigQuery]:
    with where_installed(EmbeddedBigQuery) as server:
        yield server


def where_installed(kind: Callable[[], Server]) -> Server:
    """Where the environment of a server cannot be created: skipped on a laptop, failed in CI."""
    try:
        return kind()
    except NotInstalled as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spanner_server() -> Iterator[EmbeddedSpanner]:
    with EmbeddedSpanner() as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[object]]:
    """A database of the test's own, and a connection that commits each statement."""
    name = f"t{abs(hash(request.node.nodeid)):x}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
            yield connection
        slots = "SELECT slot_name FROM pg_replication_slots WHERE database = %s AND temporary = %s"
        # They end with their sessions. A driver that a failed test left behind would keep its own for ever.
        server.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s", [name])
        until(lambda: not server.execute(slots, [name, True]).fetchall(), "the end of temporary slots", every_s=0.01)
        for (slot,) in server.execute(slots, [name, False]).fetchall():
            server.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def connection(postgres: EmbeddedPostgres, database: psycopg.Connection[object]) -> ConnectionInfo:
    return ConnectionInfo(
        "source", postgres.host, postgres.port, postgres.user, postgres.password, schema=database.info.dbname
    )


@pytest.fixture(params=["postgres", "mysql"])
def warehouse(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of the test's own on each kind of database that can be a target."""
    server = request.getfixturevalue("postgres" if request.param == "postgres" else "mariadb")
    with new_schema(request.param, server, f"w{abs(hash(request.node.nodeid)):x}") as database:
        yield database

"""The sizes of tables from the statistics of real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source_features import EstimatesSizes
from airflow_cdc_provider.connectors.sources.jdbc_poll.source import JdbcPollSource
from airflow_cdc_provider.connectors.sources.jdbc_poll.timestamps import propose_timestamps
from airflow_cdc_provider.connectors.sources.salesforce_poll.objects import matching_objects
from airflow_cdc_provider.connectors.sources.salesforce_poll.source import SalesforcePollSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.table_size import TableSize
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from tests.connectors import mysql_database, sqlserver_database
from tests.connectors.conftest import Database
from tests.mariadb import series
from tests.simulators.sqlserver.tables import Col

pytestmark = pytest.mark.server


@pytest.fixture
def filled(database: Database) -> Database:
    database.sql(
        "CREATE TABLE plain (id int PRIMARY KEY, name text)",
        "INSERT INTO plain SELECT n, repeat('x', 100) FROM generate_series(1, 5000) n",
        "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000)",
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (9000)",
        "INSERT INTO parted SELECT n FROM generate_series(1, 3000) n",
        "ANALYZE",
        "CREATE TABLE fresh (id int PRIMARY KEY) WITH (autovacuum_enabled = false)",
        "INSERT INTO fresh SELECT n FROM generate_series(1, 9000) n",
    )
    return database


def test_postgresql_estimates_rows_and_bytes_of_plain_and_partitioned_tables(filled: Database) -> None:
    sizes = filled.source.sizes(["public.plain", "public.parted", "public.fresh", "public.absent"])
    assert sizes.keys() == {"public.plain", "public.parted", "public.fresh"}
    assert (sizes["public.plain"].rows, sizes["public.parted"].rows) == (5000, 3000)
    assert sizes["public.plain"].bytes == filled.ask("SELECT pg_table_size('plain')")
    assert sizes["public.fresh"].rows is None, "it was never analyzed"
    assert sizes["public.fresh"].bytes == filled.ask("SELECT pg_table_size('fresh')")
    assert filled.source.sizes([]) == {}


def test_a_copy_of_a_partitioned_table_counts_the_rows_of_its_partitions_once(filled: Database) -> None:
    filled.publish("parted")
    with filled.source.copy(filled.task("public.parted"), 1, {}, 1) as copy:
        assert copy.rows == 3000


def test_polled_tables_have_the_sizes_of_their_system(filled: Database) -> None:
    server = filled.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, filled.name)
    options = {"driver": "postgresql+psycopg", "timestamp_column": "t"}
    source = JdbcPollSource(Source("jdbc_poll", "db", options=options), info, "shop")
    sizes = source.sizes(["public.plain", "public.fresh", "public.absent"])
    assert sizes["public.plain"] == filled.source.sizes(["public.plain"])["public.plain"]
    assert sizes["public.fresh"].rows is None and sizes["public.fresh"].bytes
    assert sizes.keys() == {"public.plain", "public.fresh"}


def test_mariadb_estimates_rows_and_bytes(mariadb: EmbeddedMariaDB) -> None:
    shop = mysql_database.Shop(mariadb)
    shop.sql(
        "CREATE TABLE t (id int PRIMARY KEY, word varchar(20))",
        f"INSERT INTO t SELECT seq, seq FROM {series(5000)}",
        "ANALYZE TABLE t",
    )
    name = shop.table("t")
    size = shop.source.sizes([name, shop.table("absent")])[name]
    assert size.rows is not None and 4000 < size.rows < 6000
    assert size.bytes is not None and size.bytes > 50_000
    assert shop.source.sizes([]) == {}


def test_sql_server_counts_rows_and_pages(tmp_path: Path) -> None:
    shop = sqlserver_database.Shop(tmp_path)
    table = shop.table("dbo.item", Col("id", "int", nullable=False))
    shop.insert(table, {"id": 1}, {"id": 2})
    assert shop.source.sizes(["dbo.item", "dbo.absent"]) == {"dbo.item": TableSize(2, 2 * 8192)}


@pytest.fixture(scope="module")
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg() as org:
        org.load("Account", [{"Name": f"A{n}"} for n in range(7)])
        yield org


def test_salesforce_counts_records(org: SalesforceOrg) -> None:
    extra = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    source = SalesforcePollSource(
        Source("salesforce_poll", "crm", options={"objects": ["Account"]}), ConnectionInfo("crm", extra=extra), "crm"
    )
    assert isinstance(source, EstimatesSizes)
    assert source.sizes(["Account", "Absent__c"]) == {"Account": TableSize(7)}
    assert source.sizes([*(f"Absent{n}__c" for n in range(300)), "Contact", "Account"])["Account"] == TableSize(7)
    assert matching_objects(source.org.rest.objects(), ["Acc*", "Contact"]) == ["Account", "Contact"]


def test_objects_of_the_system_are_proposed_only_by_name() -> None:
    summaries = [
        {"name": "Account", "queryable": True, "replicateable": True, "triggerable": True, "createable": True},
        {"name": "AccountShare", "queryable": True, "replicateable": True, "triggerable": False, "createable": True},
        {"name": "Name", "queryable": False, "replicateable": False, "triggerable": True, "createable": True},
    ]
    assert matching_objects(summaries, []) == ["Account"]
    assert matching_objects(summaries, ["*"]) == ["Account", "AccountShare"]


def polled(table: str, **columns: Kind) -> TableSchema:
    return TableSchema(table, tuple(Column(name, LogicalType(kind)) for name, kind in columns.items()), ())


def test_the_time_of_the_last_change_is_found_by_name_and_type() -> None:
    tables = [
        polled("a", id=Kind.INT64, created_at=Kind.TIMESTAMP, updated_at=Kind.TIMESTAMPTZ),
        polled("b", updated_at=Kind.TIMESTAMP),
        polled("c", LastModified=Kind.TIMESTAMP),
        polled("d", updated_at=Kind.TEXT),
    ]
    assert propose_timestamps(tables, []) == {
        "timestamp_column": "updated_at",
        "timestamp_columns": {"c": "LastModified"},
    }
    assert propose_timestamps(tables, ["a"]) == {"timestamp_column": "updated_at"}
    assert propose_timestamps(tables, ["d"]) == {}
    assert propose_timestamps(tables, ["a", "c"], given="created_at") == {
        "timestamp_column": "created_at",
        "timestamp_columns": {"c": "LastModified"},
    }

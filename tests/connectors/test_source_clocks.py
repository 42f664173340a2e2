"""The clock of a source is read with its status, and does not depend on time zones of the server."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.mysql_database import Shop as MysqlShop
from tests.connectors.polled_database import Polling
from tests.connectors.sqlserver_database import Shop as SqlServerShop
from tests.simulators.sqlserver.tables import Col


def distance_s(status: SourceStatus, now: datetime) -> float:
    assert status.at is not None and status.at.tzinfo is not None
    return abs((status.at - now).total_seconds())


def test_of_postgresql(database: Database) -> None:
    database.sql(
        "CREATE TABLE item (id int PRIMARY KEY, updated_at timestamptz NOT NULL)",
        "CREATE PUBLICATION cdc FOR TABLE item",
        f"ALTER DATABASE {database.name} SET timezone TO 'Asia/Tokyo'",
    )
    start = database.source.open_stream(["public.item"])
    assert distance_s(database.source.status(start, ["public.item"]), datetime.now(UTC)) < 60
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    polled = Polling("postgresql+psycopg", info).source
    start = polled.open_stream(["public.item"])
    assert distance_s(polled.status(start, ["public.item"]), datetime.now(UTC)) < 60
    database.sql("INSERT INTO item VALUES (1, now() - interval '1 minute')")
    assert distance_s(polled.status(start, ["public.item"]), datetime.now(UTC)) < 60


def test_of_mysql(mariadb: EmbeddedMariaDB) -> None:
    shop = MysqlShop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY)", "SET GLOBAL time_zone = '+09:00'")
    try:
        shop.position = shop.source.open_stream([])
        assert distance_s(shop.status("t"), datetime.now(UTC)) < 60
        shop.sql("INSERT INTO t VALUES (1)")
        assert distance_s(shop.status("t"), datetime.now(UTC)) < 60
    finally:
        shop.sql("SET GLOBAL time_zone = 'SYSTEM'")


def test_of_sql_server(tmp_path: Path) -> None:
    shop = SqlServerShop(tmp_path)
    shop.table("dbo.t", Col("id", "int", False))
    shop.sleep(3600)
    offset = shop.engine.properties["offset"]
    assert offset, "its local time is not UTC"
    at = shop.engine.time.replace(tzinfo=UTC)
    found = shop.status("dbo.t").at
    assert found is not None and abs((at - found).total_seconds() - 60 * offset) < 60

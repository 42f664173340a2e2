"""A server that is itself a replica: its lag is that of the copies, and what it does not log is not copied silently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from airflow_cdc_provider.core.errors import CheckFailed, SourceUnavailable
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop
from tests.mariadb import IS_MYSQL, embedded
from tests.waiting import until

pytestmark = pytest.mark.server

SETTINGS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"} if IS_MYSQL else {}
START, STOP = ("START REPLICA", "STOP REPLICA") if IS_MYSQL else ("START SLAVE", "STOP SLAVE")


@pytest.fixture(scope="module")
def primary() -> Iterator[Shop]:
    with embedded(**SETTINGS) as server:
        yield Shop(server)


@pytest.fixture
def replica(primary: Shop) -> Iterator[Callable[[str], Shop]]:
    """Starts a replica of the primary that logs what it replicates, or does not."""
    servers: list[EmbeddedMariaDB] = []

    def started(logs: str) -> Shop:
        server = embedded(server_id="2", log_slave_updates=logs, **SETTINGS)
        server.password = primary.server.password
        servers.append(server)
        server.start()
        shop = Shop(server)
        replicate(shop, primary)
        return shop

    yield started
    for server in servers:
        server.stop()


def replicate(shop: Shop, primary: Shop) -> None:
    login = primary.server
    if IS_MYSQL:
        source = f"SOURCE_HOST = '{login.host}', SOURCE_PORT = {login.port}, SOURCE_USER = '{login.user}'"
        shop.sql(
            f"CHANGE REPLICATION SOURCE TO {source}, SOURCE_PASSWORD = '{login.password}', SOURCE_AUTO_POSITION = 1,"
            " GET_SOURCE_PUBLIC_KEY = 1"
        )
    else:
        master = f"MASTER_HOST = '{login.host}', MASTER_PORT = {login.port}, MASTER_USER = '{login.user}'"
        shop.sql(f"CHANGE MASTER TO {master}, MASTER_PASSWORD = '{login.password}', MASTER_USE_GTID = slave_pos")
    shop.sql(START)
    until(lambda: primary.name in {name for (name,) in shop.ask("SHOW DATABASES")}, "the databases are replicated")


def test_a_replica_that_has_stopped_is_silent(replica: Callable[[str], Shop], primary: Shop) -> None:
    assert primary.source.silent_since() is None
    shop = replica("ON")
    until(lambda: shop.source.silent_since() is None, "replication runs")
    assert codes(shop) & {"SRC136", "SRC137"} == set()
    shop.sql(STOP)
    with pytest.raises(SourceUnavailable, match=r"SRC136.*does not replicate"):
        shop.source.silent_since()
    assert "SRC136" in codes(shop)


def test_a_late_replica_is_as_old_as_what_it_has_applied(replica: Callable[[str], Shop], primary: Shop) -> None:
    primary.sql("CREATE TABLE late (id int PRIMARY KEY)")
    shop = replica("ON")
    until(lambda: bool(shop.ask(f"SHOW TABLES FROM {primary.name} LIKE 'late'")), "the table is replicated")
    shop.sql(f"LOCK TABLES {primary.name}.late READ")
    primary.sql("SET timestamp = unix_timestamp() - 600", "INSERT INTO late VALUES (1)", "SET timestamp = DEFAULT")
    until(lambda: shop.source.silent_since() is not None, "the replica waits for the lock")
    since = shop.source.silent_since()
    assert since is not None and timedelta(minutes=9) < datetime.now(UTC) - since < timedelta(minutes=15)
    shop.sql("UNLOCK TABLES")
    until(lambda: shop.source.silent_since() is None, "the replica has applied everything")


def test_a_replica_that_does_not_log_what_it_replicates_is_refused(replica: Callable[[str], Shop]) -> None:
    shop = replica("OFF")
    assert "SRC137" in codes(shop)
    for refused in (lambda: shop.source.open_stream([]), lambda: shop.status("t")):
        with pytest.raises(CheckFailed, match=r"SRC137.*log_\w+_updates = OFF"):
            refused()


def codes(shop: Shop) -> set[str]:
    return {one.code for one in shop.source.check([])}

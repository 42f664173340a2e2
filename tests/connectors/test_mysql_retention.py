"""The binlog that the server keeps: what of it was not read, and for how long it is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop

pytestmark = pytest.mark.server


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    return Shop(mariadb)


def test_the_unread_bytes_and_the_retention_of_the_binlog_are_reported(shop: Shop) -> None:
    assert shop.source.retained_log(None).bytes is None, "no window, nothing to count from"
    before = shop.source.retained_log(shop.position)
    shop.sql("CREATE TABLE b (id int PRIMARY KEY, t longtext)", "INSERT INTO b VALUES (1, repeat('x', 2000000))")
    shop.sql("FLUSH BINARY LOGS", "INSERT INTO b VALUES (2, repeat('x', 1000000))")
    after = shop.source.retained_log(shop.position)
    assert before.bytes is not None and after.bytes is not None and after.since is not None
    assert 3_000_000 < after.bytes - before.bytes < 3_100_000
    (((_, uptime_s),), ((now,),)) = shop.ask("SHOW GLOBAL STATUS LIKE 'uptime'"), shop.ask("SELECT UNIX_TIMESTAMP()")
    assert abs(after.since.timestamp() - (float(now) - float(uptime_s))) < 600
    shop.window()
    rest = shop.source.retained_log(shop.position).bytes
    assert rest is not None and rest < 10_000


def test_without_the_right_to_see_it_the_retention_is_unknown(shop: Shop) -> None:
    login = f"blind_{shop.name}"
    shop.sql(f"CREATE USER {login}@'127.0.0.1' IDENTIFIED BY 'sesame-42'")
    with pytest.raises(CheckFailed, match="a privilege is missing"):
        shop.source_as(login, "sesame-42").retained_log(shop.position)


@pytest.mark.parametrize(("seconds", "keeps"), [(5 * 86400, timedelta(days=5)), (0, None)])
def test_the_time_for_which_the_server_keeps_the_binlog(shop: Shop, seconds: int, keeps: timedelta | None) -> None:
    ((before,),) = shop.ask("SELECT @@GLOBAL.binlog_expire_logs_seconds")
    shop.sql(f"SET GLOBAL binlog_expire_logs_seconds = {seconds}")
    try:
        assert shop.source.retained_log(shop.position).keeps == keeps
    finally:
        shop.sql(f"SET GLOBAL binlog_expire_logs_seconds = {before}")

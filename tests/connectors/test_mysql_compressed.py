"""Columns of MariaDB that the server stores and logs compressed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.mysql_database import Rows, Shop, fold, holes, records
from tests.mariadb import WITHOUT_NAMES, embedded, mariadb_only

pytestmark = [pytest.mark.server, mariadb_only]

COLUMNS = {
    "v": "varchar(300) COMPRESSED",
    "short": "varchar(255) COMPRESSED CHARACTER SET latin1",
    "odd": "text COMPRESSED CHARACTER SET sjis",
    "ti": "tinytext COMPRESSED",
    "lt": "longtext COMPRESSED",
    "b": "blob COMPRESSED",
    "vb": "varbinary(20) COMPRESSED",
}
VALUES = "REPEAT('é', 200), 'ü', REPEAT('日本', 99), '', REPEAT('y', 70000), REPEAT(X'00ff', 300), X'00'"


@pytest.fixture(scope="module", params=["FULL", WITHOUT_NAMES])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with embedded(binlog_row_metadata=request.param) as server:
        yield Shop(server)


@pytest.mark.parametrize("setting", ["threshold = 1", "threshold = 100000", "zlib_wrap = 1", "zlib_level = 0"])
def test_a_compressed_column_is_the_same_from_binlog_and_copy(shop: Shop, setting: str) -> None:
    name = f"packed_{setting.partition(' ')[0]}{len(setting)}"
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    shop.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})", f"SET column_compression_{setting}")
    task = shop.task(name)
    shop.sql(f"INSERT INTO {name} VALUES (1, {VALUES})", f"INSERT INTO {name} (id) VALUES (2)")
    shop.sql(
        f"UPDATE {name} SET v = CONCAT(v, '!') WHERE id = 1", f"SET column_compression_{setting.split()[0]} = DEFAULT"
    )
    items = shop.window(task)
    streamed: Rows = {}
    fold(streamed, records(items))
    assert not holes(items) and streamed == shop.copied(task)[1]
    assert streamed["[1]"]["v"] == "é" * 200 + "!" and streamed["[1]"]["odd"] == "日本" * 99


def test_a_column_that_becomes_compressed_keeps_its_values(shop: Shop) -> None:
    shop.sql("CREATE TABLE later (id int PRIMARY KEY, v varchar(300))", "INSERT INTO later VALUES (1, 'a')")
    held = shop.task("later").schema
    shop.window(shop.task("later"))
    shop.sql("ALTER TABLE later MODIFY v varchar(300) COMPRESSED", "INSERT INTO later VALUES (2, REPEAT('b', 300))")
    items = shop.window(shop.task("later", held))
    (record,) = records(items)
    assert not holes(items) and record.key == "[2]" and "b" * 300 in (record.after or "")

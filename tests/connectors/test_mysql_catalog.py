"""What a server opens to answer questions about its tables."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import SplitRead
from airflow_cdc_provider.connectors.sources.mysql import catalog
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop


@pytest.mark.server
def test_a_copy_of_a_table_opens_no_other_table_of_the_server_for_its_columns(
    mariadb: EmbeddedMariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks several times: each time the server would open as many as it has."""
    shop, plans = Shop(mariadb), list[str]()
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, note text)", "INSERT INTO t VALUES (1, 'a')")
    task = shop.task("t")
    ask = catalog.fetch_all

    def explained(connection: Any, query: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        plans.extend(str(row[-1]) for row in ask(connection, f"EXPLAIN {query}", parameters))
        return ask(connection, query, parameters)

    with shop.source.copy(task, 1, shop.position, 1) as copy:
        pass
    assert isinstance(copy.read, SplitRead)
    monkeypatch.setattr(catalog, "fetch_all", explained)
    list(shop.source.read_split(copy.read.splits[0], copy.schema))
    assert plans and all("Scanned 0 databases" in plan for plan in plans), plans


@pytest.mark.server
@pytest.mark.parametrize("databases", ["its", "all", "other"])
def test_one_table_is_read_as_it_is_among_all(mariadb: EmbeddedMariaDB, databases: str) -> None:
    shop = Shop(mariadb)
    shop.sql(
        "CREATE TABLE t (a int NOT NULL, b int NOT NULL, c text, g int AS (a + 1), UNIQUE (b, a))",
        "CREATE TABLE `o.x` (id int PRIMARY KEY)",
        "CREATE VIEW v AS SELECT 1 AS a",
    )
    given = {"its": [shop.name], "all": [], "other": ["elsewhere"]}[databases]
    with shop.source.client.session("describe") as connection:
        found = catalog.read_tables(connection, given)
        names = [shop.table("t"), f'{shop.name}."o.x"', shop.table("v"), shop.table("x"), "t"]
        one = {name: catalog.read_table(connection, given, name) for name in names}
    assert one == {name: found.get(name) for name in names}
    assert sum(table is not None for table in one.values()) == (0 if databases == "other" else 2)


@pytest.mark.server
def test_tables_whose_names_differ_in_case_only_have_their_own_columns_and_keys(mariadb: EmbeddedMariaDB) -> None:
    """The catalog of MariaDB compares and sorts names without their case."""
    shop = Shop(mariadb)
    shop.sql(
        "CREATE TABLE t (a int NOT NULL, b int NOT NULL, c text, UNIQUE k (b, a))",
        "CREATE TABLE `T` (x int NOT NULL, y int NOT NULL, UNIQUE k (x, y))",
    )
    with shop.source.client.session("describe") as connection:
        found = catalog.read_tables(connection, [shop.name])
        one = {name: catalog.read_table(connection, [shop.name], name) for name in found}
    assert one == found
    shapes = {name: (table.schema.names, table.schema.key) for name, table in found.items()}
    assert shapes == {shop.table("t"): (("a", "b", "c"), ("b", "a")), shop.table("T"): (("x", "y"), ("x", "y"))}

"""Renamed tables: read from statements, found by InnoDB's ids, and followed through the binlog."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.mysql_statements.table_renames import Rename, names_of
from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.statements import Effect, parse_statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes, records

CONTROL = ControlRecord("r", "shop.t", "log", "me", "one", 1, 0, "", State(TableState.REPLICATING, "now"))
PASSWORD = "a-password"


@pytest.mark.parametrize(
    ("text", "renames"),
    [
        ("RENAME TABLE a TO b", [("shop.a", "shop.b")]),
        ("RENAME TABLES IF EXISTS a TO b, `c d` TO other.`e`", [("shop.a", "shop.b"), ("shop.c d", "other.e")]),
        ("RENAME TABLE a WAIT 5 TO b", [("shop.a", "shop.b")]),
        ("RENAME TABLE other.a NOWAIT TO b /* why */", [("other.a", "shop.b")]),
        ("ALTER TABLE a RENAME b", [("shop.a", "shop.b")]),
        ("ALTER TABLE IF EXISTS other.a RENAME TO b", [("other.a", "shop.b")]),
        ("alter table `a` rename as `to`", [("shop.a", "shop.to")]),
        ("ALTER TABLE a RENAME = b", [("shop.a", "shop.b")]),
        ("ALTER TABLE a RENAME TO b, ADD c int", []),
        ("ALTER TABLE a ENGINE = InnoDB, RENAME TO b", []),
        ("RENAME TABLE a", []),
        ("RENAME TABLE a TO", []),
        ("ALTER TABLE a DROP PARTITION p", []),
    ],
)
def test_a_statement_that_renames_and_does_nothing_else_is_read(text: str, renames: list[Rename]) -> None:
    statement = parse_statement(Query("shop", text))
    assert statement.effect is Effect.REPLACE_TABLE and list(statement.renames) == renames


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcdef")), max_size=12))
def test_the_names_of_a_table_are_those_that_it_had(pairs: list[tuple[str, str]]) -> None:
    tables = {name: [name] for name in "abcd"}
    done = []
    for before, after in pairs:
        if before in tables and after not in tables:
            tables[after] = [*tables.pop(before), after]
            done.append((before, after))
    assert {name: list(names_of(name, done)) for name in tables} == tables


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY)", "SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
    shop.position = shop.source.open_stream([])
    return shop


def identity_of(shop: Shop, name: str) -> TableIdentity:
    (identity,) = shop.source.identities([shop.table(name)]).values()
    return identity


def renamed(shop: Shop, task: TableTask, identity: TableIdentity, name: str) -> TableTask:
    control = replace(CONTROL, schema=task.schema, identity=identity)
    return replace(task, control=control, renamed_to="" if name == "t" else shop.table(name))


@pytest.mark.server
@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_followed_through_any_renames_among_other_tables(shop: Shop, seed: int) -> None:
    chance, task, identity, name = random.Random(seed), shop.task("t"), identity_of(shop, "t"), "t"
    written, read = [], []
    for number in range(60):
        match chance.choice(("row", "row", "rename", "other", "window")):
            case "row":
                shop.sql(f"INSERT INTO {name} VALUES ({number})")
                written.append(number)
            case "rename":
                after = chance.choice([one for one in ("a", "b", "c", "d") if one != name])
                shop.sql(chance.choice((f"RENAME TABLE {name} TO {after}", f"ALTER TABLE {name} RENAME TO {after}")))
                name = after
            case "other":
                other = chance.choice([one for one in ("a", "b", "c", "d", "t") if one != name])
                shop.sql(
                    f"CREATE TABLE {other} (id int PRIMARY KEY)",
                    f"INSERT INTO {other} VALUES (-1)",
                    f"DROP TABLE {other}",
                )
            case "window" if name != "t":
                items = shop.window(renamed(shop, task, identity, name))
                assert holes(items) == []
                read += [one.key for one in records(items)]
    assert len(written) > 10 and name != "t"
    read += [one.key for one in records(shop.window(renamed(shop, task, identity, name)))]
    assert read == [f"[{number}]" for number in written]


@pytest.mark.server
def test_a_table_that_is_gone_when_its_window_is_read_stops_the_run(shop: Shop) -> None:
    task, identity = shop.task("t"), identity_of(shop, "t")
    shop.sql("INSERT INTO t VALUES (1)", "RENAME TABLE t TO moved", "DROP TABLE moved")
    with pytest.raises(SourceUnavailable, match="SRC138"):
        shop.window(renamed(shop, task, identity, "moved"))


@pytest.mark.server
def test_names_are_read_as_innodb_writes_them(shop: Shop) -> None:
    names = ["a-b", "a#b.c", "$x y", "日本"]
    shop.sql(*(f"CREATE TABLE `{name}` (id int PRIMARY KEY)" for name in names))
    shop.sql("CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2", "CREATE TABLE ä (id int)")
    tables = list(map(shop.table, ["a-b", '"a#b.c"', "$x y", "日本", "parted", "ä"]))
    assert list(shop.source.identities(tables)) == tables[:-1]


@pytest.mark.server
def test_a_login_that_may_not_read_the_ids_confirms_no_drop_of_a_known_table(shop: Shop) -> None:
    identity, login = identity_of(shop, "t"), f"limited_{shop.name}"
    shop.sql(f"CREATE USER {login} IDENTIFIED BY '{PASSWORD}'", f"GRANT SELECT ON {shop.name}.* TO {login}")
    limited, table = shop.source_as(login, PASSWORD), shop.table("t")
    hidden = limited.renames_hidden()
    assert hidden is not None and hidden.do == f"GRANT PROCESS ON *.* TO '{login}'@'%';"
    assert shop.source.renames_hidden() is None
    assert limited.identities([table]) == {} and limited.present_names({table: identity}) == {}
    shop.sql("RENAME TABLE t TO moved")
    assert shop.source.present_names({table: identity}) == {table: shop.table("moved")}
    assert not shop.source.is_dropped(table, identity) and not limited.is_dropped(table, identity)
    assert shop.source.is_dropped(table, None) and limited.is_dropped(table, None)
    shop.sql("DROP TABLE moved")
    assert shop.source.is_dropped(table, identity) and not limited.is_dropped(table, identity)

"""Databases and tables whose names have dots are kept apart: table ``b.c`` of ``a`` and table ``c`` of ``a.b``."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.mysql.binlog import Query
from airflow_cdc_provider.connectors.sources.mysql.catalog import exists
from airflow_cdc_provider.connectors.sources.mysql.statements import parse_statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, fold, holes, records
from tests.connectors.table_tasks import table_task

pytestmark = pytest.mark.server

SAME_TEXTS = ["DROP TABLE `a`.`b.c`", "TRUNCATE `b.c`", "ALTER TABLE a.`b.c` ADD x int", "DROP DATABASE `a`"]
OTHERS = ["DROP TABLE `a.b`.`c`", "TRUNCATE `a.b`.c", "ALTER TABLE `a.b`.c ADD x int", "DROP DATABASE `a.b`"]


class Twins:
    """The database of the shop has ``b.c``, another one, with ``.b`` at the end of its name, has ``c``."""

    def __init__(self, server: EmbeddedMariaDB) -> None:
        self.shop = Shop(server)
        self.other = f"{self.shop.name}.b"
        self.names = (f'{self.shop.name}."b.c"', f'"{self.other}".c')
        self.in_sql = (f"`{self.shop.name}`.`b.c`", f"`{self.other}`.`c`")
        self.source = self.shop.source = self.shop.source_as(
            server.user, server.password, databases=[self.shop.name, self.other]
        )
        self.shop.sql(f"CREATE DATABASE `{self.other}` CHARACTER SET utf8mb4")
        for table, word in zip(self.in_sql, ("one", "two"), strict=True):
            self.shop.sql(
                f"CREATE TABLE {table} (id int PRIMARY KEY, word varchar(20) COMMENT '{word}')",
                f"INSERT INTO {table} VALUES (1, '{word}')",
            )

    def task(self, name: str) -> TableTask:
        return table_task(self.source.tables(), name)

    def tasks(self) -> list[TableTask]:
        return [self.task(name) for name in self.names]


@pytest.fixture
def twins(mariadb: EmbeddedMariaDB) -> Twins:
    return Twins(mariadb)


def test_copies_and_changes_of_both_are_kept_apart(twins: Twins) -> None:
    one, two = twins.tasks()
    copies = {task.table: twins.shop.copied(task)[1] for task in (one, two)}
    assert [rows["[1]"]["word"] for rows in copies.values()] == ["one", "two"]
    first, second = twins.in_sql
    twins.shop.window(one, two)
    twins.shop.sql(
        f"INSERT INTO {first} VALUES (2, 'first')",
        f"UPDATE {second} SET word = 'second' WHERE id = 1",
        f"TRUNCATE TABLE {first}",
        f"INSERT INTO {first} VALUES (3, 'after')",
        f"INSERT INTO {second} VALUES (4, 'kept')",
    )
    changes = records(twins.shop.window(one, two))
    for task in (one, two):
        fold(copies[task.table], [record for record in changes if record.table == task.table])
    words = [sorted(row["word"] for row in rows.values()) for rows in copies.values()]
    assert words == [["after"], ["kept", "second"]]


def test_a_statement_affects_the_table_that_it_names(twins: Twins) -> None:
    one, two = twins.tasks()
    twins.shop.sql(f"CREATE OR REPLACE TABLE {twins.in_sql[1]} (id int PRIMARY KEY)")
    assert [table for table, _ in holes(twins.shop.window(one, two))] == [two.table]


def test_a_renamed_table_has_its_new_name(twins: Twins) -> None:
    identities = twins.source.identities(twins.names)
    assert len({identity.partitions[""].file for identity in identities.values()}) == 2
    twins.shop.sql(f"RENAME TABLE {twins.in_sql[0]} TO `{twins.other}`.`d.e`")
    assert twins.source.present_names(identities) == {
        twins.names[0]: f'"{twins.other}"."d.e"',
        twins.names[1]: twins.names[1],
    }


def test_what_the_catalog_says_is_of_the_table_that_it_names(twins: Twins) -> None:
    twins.shop.sql(f"CREATE VIEW `{twins.other}`.`v.w` AS SELECT 1")
    assert [schema.table for schema in twins.source.tables()] == list(twins.names)
    assert twins.source.comments(twins.names) == {twins.names[0]: {"word": "one"}, twins.names[1]: {"word": "two"}}
    assert twins.source.sizes(twins.names).keys() == set(twins.names)
    assert twins.source.other_kinds().keys() == {f'"{twins.other}"."v.w"'}
    assert twins.source.check(twins.tasks()) == []
    with twins.source.client.session("describe") as connection:
        assert [exists(connection, name) for name in (*twins.names, f"{twins.shop.name}.b.c")] == [True, True, False]


def test_a_right_on_one_table_is_none_on_the_other(twins: Twins) -> None:
    login = f"u_{twins.shop.name}"
    twins.shop.sql(
        f"CREATE USER {login} IDENTIFIED BY 'p'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR ON *.* TO {login}",
        f"GRANT SELECT ON {twins.in_sql[0]} TO {login}",
        f"GRANT SELECT (id) ON {twins.in_sql[1]} TO {login}",
    )
    limited = twins.shop.source_as(login, "p", databases=[twins.shop.name, twins.other])
    tasks = [table_task(limited.tables(), name) for name in twins.names]
    assert limited.refused(tasks).keys() == {twins.names[1]}


def test_a_key_of_the_yaml_is_proven_by_the_index_of_its_table(twins: Twins) -> None:
    twins.shop.sql(*(f"ALTER TABLE {table} MODIFY word varchar(20) NOT NULL" for table in twins.in_sql))
    twins.shop.sql(f"ALTER TABLE {twins.in_sql[0]} ADD UNIQUE (word)")
    tasks = [table_task(twins.source.tables(), name, key=["word"], columns=Columns()) for name in twins.names]
    found = twins.source.refused(tasks)
    assert found.keys() == {twins.names[1]}
    assert found[twins.names[1]].do.startswith(f"ALTER TABLE {twins.in_sql[1]} ADD UNIQUE")


@pytest.mark.parametrize("text", SAME_TEXTS)
def test_a_statement_on_a_dotted_table_affects_no_table_of_a_dotted_database(text: str) -> None:
    assert parse_statement(Query("a", text)).affected(['a."b.c"', '"a.b".c']) == ['a."b.c"']


@pytest.mark.parametrize("text", OTHERS)
def test_a_statement_on_a_dotted_database_affects_no_dotted_table(text: str) -> None:
    assert parse_statement(Query("x", text)).affected(['a."b.c"', '"a.b".c']) == ['"a.b".c']


def test_a_table_called_asterisk_is_not_the_whole_database() -> None:
    assert parse_statement(Query("a", "DROP TABLE `*`")).affected(["a.t", "a.*"]) == ["a.*"]

"""A column that the login may not select is never read from the binlog, which has all columns."""

from __future__ import annotations

from itertools import count

import pytest

from airflow_cdc_provider.connectors.sources.mysql.grants import limited_tables, whole_grants
from airflow_cdc_provider.core.log.quarantine import WITHHELD_CODEC, undecoded
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes, records
from tests.mariadb import mariadb_only

pytestmark = pytest.mark.server

NUMBERS = count(1)
SOME = Columns(include=("id", "t", "n"))


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    """Read by a login that may select three of five columns."""
    shop = Shop(mariadb)
    shop.sql(
        "CREATE TABLE t (id int PRIMARY KEY, t varchar(9), n int, secret varchar(20), late int INVISIBLE)",
        "CREATE TABLE other (id int PRIMARY KEY)",
    )
    return shop


def reader(shop: Shop, *grants: str) -> str:
    login = f"limited{next(NUMBERS)}"
    user = f"{login}@'127.0.0.1'"
    shop.sql(
        f"CREATE USER {user} IDENTIFIED BY 'sesame-42'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        f"GRANT SELECT ON other TO {user}",
        *(grant.format(user=user) for grant in grants),
    )
    shop.source = shop.source_as(login, "sesame-42")
    return user


def test_a_table_with_columns_that_the_login_may_not_select_is_refused(shop: Shop) -> None:
    user = reader(shop, "GRANT SELECT (id, t, n) ON t TO {user}")
    task = shop.task("t")
    refused = shop.source.refused([task, shop.task("other")])
    (problem,) = refused.values()
    assert refused.keys() == {task.table} and shop.source.check([task, shop.task("other")]) == [problem]
    assert (problem.code, problem.found) == ("SRC010", "SELECT on the columns id, t, n only, and the binlog has all")
    assert "columns: {include: [id, t, n]}" in problem.allowed
    shop.sql(problem.do.removesuffix(";"))
    assert shop.source.refused([shop.task("t")]) == {} and f"TO '{user[:7]}" in problem.do


def test_no_value_of_such_a_column_leaves_the_stream(shop: Shop) -> None:
    reader(shop, "GRANT SELECT (id, t, n) ON t TO {user}")
    tasks = [shop.task("t"), shop.task("other")]
    shop.window(*tasks)
    shop.sql("INSERT INTO t VALUES (1, 'a', 2, 'hidden-value')", "INSERT INTO other VALUES (1)")
    items = shop.window(*tasks)
    assert "hidden-value" not in repr(items) and "aGlkZGVuLXZhbHVl" not in repr(items)
    assert [table for table, _ in holes(items)] == [shop.table("t")]
    assert [record.table for record in records(items)] == [shop.table("other")]


def test_the_columns_that_the_rule_lists_are_copied(shop: Shop) -> None:
    reader(shop, "GRANT SELECT (id, t, n) ON t TO {user}")
    task = shop.task("t", columns=SOME)
    assert shop.source.refused([task]) == {} and shop.source.check([task]) == []
    shop.window(task)
    shop.sql("INSERT INTO t VALUES (1, 'a', 2, 'hidden-value')")
    items = shop.window(task)
    (record,) = records(items)
    assert record.after == '{"id":1,"t":"a","n":2}' and "hidden-value" not in repr(items)
    assert shop.copied(task)[1] == {"[1]": {"id": 1, "t": "a", "n": 2}}


def test_a_listed_column_without_the_right_is_refused(shop: Shop) -> None:
    """The catalog shows a column with any right on it."""
    reader(shop, "GRANT SELECT (id), INSERT (t) ON t TO {user}")
    (problem,) = shop.source.refused([shop.task("t", columns=Columns(include=("id", "t")))]).values()
    assert problem.found == "SELECT on the columns id only, and the binlog has all"


def test_a_dropped_column_that_the_login_might_not_select_is_not_read(shop: Shop) -> None:
    """Nothing shows any more whether it had the right."""
    reader(shop, "GRANT SELECT (id, t, n, late) ON t TO {user}")
    shop.window(shop.task("t"))
    shop.sql("INSERT INTO t VALUES (1, 'a', 2, 'hidden-value')", "ALTER TABLE t DROP secret")
    items = shop.window(shop.task("t"))
    assert "hidden-value" not in repr(items) and holes(items)


@mariadb_only
def test_the_rights_of_a_role_count(shop: Shop) -> None:
    role = f"readers{next(NUMBERS)}"
    shop.sql(f"CREATE ROLE {role}", f"GRANT SELECT (id, t, n) ON t TO {role}")
    reader(shop, f"GRANT {role} TO {{user}}", f"SET DEFAULT ROLE {role} FOR {{user}}")
    assert shop.source.refused([shop.task("t")]).keys() == {shop.table("t")}
    shop.sql(f"GRANT SELECT ON t TO {role}")
    assert shop.source.refused([shop.task("t")]) == {}


def test_rights_on_whole_tables_are_read_from_grants() -> None:
    tables = whole_grants(
        [
            "GRANT USAGE ON *.* TO `u`@`%`",
            "GRANT INSERT, SELECT, UPDATE (`a`) ON `shop\\_1`.* TO `u`@`%`",
            "GRANT SELECT (`id`, `t`), INSERT ON `limited`.`t` TO `u`@`%`",
            "GRANT ALL PRIVILEGES ON `my_%`.* TO `u`@`%` WITH GRANT OPTION",
            "GRANT SELECT, INSERT (`SELECT`) ON `a``b`.`c_d` TO `u`@`%`",
            "GRANT INSERT (`x`, `SELECT`) ON `other`.`t` TO `u`@`%`",
            "GRANT SELECT ON `d`.`e.f` TO `u`@`%`",
            "GRANT SELECT ON `g.h`.* TO `u`@`%`",
            "GRANT `r` TO `u`@`%`",
            "GRANT PROXY ON ''@'%' TO 'root'@'localhost'",
        ]
    )
    readable = {"shop_1\0t", "my1x\0t", "my_\0x.y", "a`b\0c_d", "d\0e.f", "g.h\0i"}
    assert {name for name in readable if tables.fullmatch(name)} == readable
    others = ("shopx1\0t", "limited\0t", "my\0t", "a`b\0cxd", "a`b\0e", "other\0t", "t", "d.e\0f", "g\0h.i")
    assert not any(map(tables.fullmatch, others))
    assert whole_grants(["GRANT SELECT ON *.* TO `u`@`%`"]).fullmatch("any\0table")


def test_a_locked_table_of_a_limited_login_is_not_read(shop: Shop) -> None:
    reader(shop, "GRANT SELECT (id, t, n) ON t TO {user}")
    tasks = [shop.task("t"), shop.task("other")]
    with shop.connect() as other:
        other.cursor().execute(f"LOCK TABLES {shop.table('t')} WRITE, {shop.table('other')} WRITE")
        assert shop.source.refused(tasks).keys() == {shop.table("t")}


@pytest.mark.parametrize("grant", ["*.*", "{shop}.*", "{shop}.t"])
def test_a_login_that_may_select_the_table_is_not_limited(shop: Shop, grant: str) -> None:
    reader(shop, f"GRANT SELECT ON {grant.format(shop=shop.name)} TO {{user}}")
    assert shop.source.refused([shop.task("t")]) == {}


@mariadb_only
def test_the_bytes_of_a_bad_record_are_withheld(shop: Shop) -> None:
    shop.sql("CREATE TABLE odd (id int PRIMARY KEY, t varchar(9) CHARACTER SET ascii, secret varchar(20))")
    reader(shop, "GRANT SELECT (id, t) ON odd TO {user}")
    task = shop.task("odd", columns=Columns(include=("id", "t")))
    shop.window(task)
    shop.sql("INSERT INTO odd VALUES (1, X'80', 'hidden-value')")
    (record,) = records(shop.window(task))
    saved = undecoded(record)
    assert saved and (saved.codec, saved.raw, saved.columns, saved.known) == (WITHHELD_CODEC, "", ("t",), {"id": 1})


class Cursor:
    """Of a login with a role. As PyMySQL, it formats a text only with parameters."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def cursor(self) -> Cursor:
        return self

    def execute(self, query: str, parameters: tuple[object, ...] | None) -> None:
        self.executed.append(query if parameters is None else query % parameters)

    def fetchall(self) -> list[tuple[str]]:
        return [("`reader`@`%`",)] if "CURRENT_ROLE" in self.executed[-1] else [("GRANT SELECT ON *.* TO `x`@`%`",)]


def test_the_grants_of_a_role_are_asked_for_by_its_name() -> None:
    connection = Cursor()
    assert limited_tables(connection, [], mariadb=False) == frozenset()
    assert connection.executed[-1] == "SHOW GRANTS FOR CURRENT_USER() USING `reader`@`%`"

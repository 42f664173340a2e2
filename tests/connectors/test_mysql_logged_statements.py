"""Statements that the binlog has as text, in place of the rows that they change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes
from tests.mariadb import IS_MYSQL, mariadb_only

pytestmark = pytest.mark.server

AS_TEXT = "SET SESSION binlog_format = 'STATEMENT'"
A_FUNCTION = "CREATE FUNCTION f() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE t SET n = 2; RETURN 1; END"
A_TRIGGER = "CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW UPDATE t SET n = 2"
TEXT_LOGGED = "a statement was logged instead of the rows that it changed"


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Iterator[Shop]:
    """Functions of other databases count too."""
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(20), n int DEFAULT 5)")
    shop.position = shop.source.open_stream([])
    yield shop
    shop.sql("DROP FUNCTION IF EXISTS f")


def test_a_statement_logged_instead_of_its_rows_is_a_hole(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, '', 1)", AS_TEXT, "UPDATE t SET n = 2")
    items = shop.window(shop.task("t"))
    assert holes(items) == [(shop.table("t"), TEXT_LOGGED)]


@pytest.mark.parametrize(
    ("object_", "statements"),
    [
        ("CREATE VIEW v AS SELECT * FROM t", ["UPDATE v SET n = 2"]),
        ("CREATE VIEW v AS SELECT * FROM t", ["UPDATE v SET n = 2", "DROP VIEW v"]),
        ("CREATE VIEW v AS SELECT * FROM t", ["UPDATE v SET n = 2", "DROP VIEW v", "CREATE TABLE v (n int)"]),
        (A_TRIGGER, ["INSERT INTO other VALUES (1)"]),
        (A_TRIGGER, ["INSERT INTO other VALUES (1)", "DROP TRIGGER g"]),
        (A_TRIGGER, ["INSERT INTO other VALUES (1)", "DROP TABLE other", "CREATE TABLE other (id int)"]),
        (A_FUNCTION, ["SELECT f()"]),
        (A_FUNCTION, ["INSERT INTO other VALUES (f())"]),
        (A_FUNCTION, ["INSERT INTO other SELECT f()", "DROP FUNCTION f"]),
        (A_FUNCTION, ["CREATE TABLE x SELECT f() AS c"]),
        pytest.param(A_FUNCTION, ["CREATE OR REPLACE TABLE x SELECT f() AS c"], marks=mariadb_only),
        (A_FUNCTION, ["CREATE TEMPORARY TABLE x SELECT f() AS c"]),
        ("CREATE VIEW v AS SELECT * FROM t", ["DELETE FROM other USING other JOIN v"]),
    ],
)
def test_a_logged_statement_that_changes_another_table_than_it_names_is_a_hole(
    shop: Shop, object_: str, statements: list[str]
) -> None:
    shop.sql("CREATE TABLE other (id int)", object_, "INSERT INTO t VALUES (1, '', 1)")
    shop.window(shop.task("t"))
    shop.sql(AS_TEXT, *statements)
    assert shop.status("t").has_changes
    assert ("", TEXT_LOGGED) in holes(shop.window(shop.task("t")))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO other VALUES (1), (2)",
        "UPDATE other SET id = 2 WHERE id = 1",
        "DELETE FROM other WHERE id = 2 ORDER BY id LIMIT 1",
        "REPLACE {}.other VALUES (3)",
        "INSERT IGNORE INTO other SELECT id FROM away",
        "CREATE TABLE x SELECT id FROM away",
        "REPAIR TABLE away",
    ],
)
def test_a_logged_statement_that_changes_the_table_that_it_names_is_no_hole_of_others(
    shop: Shop, statement: str
) -> None:
    shop.sql("CREATE TABLE other (id int)", "CREATE TABLE away (id int)", "CREATE VIEW v AS SELECT * FROM t")
    shop.window(shop.task("t"))
    shop.sql(AS_TEXT, statement.format(shop.name))
    assert not shop.status("t").has_changes and not holes(shop.window(shop.task("t")))


def test_a_login_that_may_not_see_triggers_and_functions_cannot_exclude_a_change(shop: Shop) -> None:
    shop.sql("CREATE TABLE other (id int)", "CREATE USER seer IDENTIFIED BY 'hush-hush'")
    shop.sql("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO seer")
    shop.sql(*["GRANT BINLOG MONITOR ON *.* TO seer"] * (not IS_MYSQL))
    try:
        shop.source = shop.source_as("seer", "hush-hush")
        shop.window(shop.task("t"))
        shop.sql(AS_TEXT, "INSERT INTO other VALUES (1)")
        assert shop.status("t").has_changes
        assert holes(shop.window(shop.task("t"))) == [("", TEXT_LOGGED)]
        shop.sql("GRANT TRIGGER, EXECUTE ON *.* TO seer", "INSERT INTO other VALUES (1)")
        assert not holes(shop.window(shop.task("t")))
    finally:
        shop.sql("DROP USER seer")


@mariadb_only
def test_an_analyzed_statement_that_is_logged_is_a_hole(shop: Shop) -> None:
    shop.window(shop.task("t"))
    shop.sql(AS_TEXT, "ANALYZE UPDATE t SET n = 2", "ANALYZE FORMAT = JSON DELETE FROM t")
    assert shop.status("t").has_changes
    assert holes(shop.window(shop.task("t"))) == [(shop.table("t"), TEXT_LOGGED)] * 2


@mariadb_only
def test_a_file_loaded_by_a_session_that_logs_statements_is_a_hole(shop: Shop) -> None:
    file = shop.server.folder / "rows.txt"
    file.write_text("7\tx\t8\n")
    file.chmod(0o644)
    shop.sql("SET SESSION binlog_format = 'STATEMENT'", f"LOAD DATA INFILE '{file}' INTO TABLE t")
    assert shop.status("t").has_changes
    assert holes(shop.window(shop.task("t"))) == [(shop.table("t"), TEXT_LOGGED)]


def test_statements_that_are_logged_are_one_hole_of_one_window(shop: Shop) -> None:
    """A checksum of another database logs thousands."""
    shop.sql("CREATE TABLE other (id int)", A_FUNCTION)
    shop.window(shop.task("t"))
    shop.sql(AS_TEXT, *["INSERT INTO other SELECT f()"] * 5)
    boundaries = [item for item in shop.window(shop.task("t")) if isinstance(item, Boundary)]
    assert len(boundaries) == 1 and not shop.status("t").has_changes

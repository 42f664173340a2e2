"""What ``check`` reports about a MySQL source, each with the statement that solves it."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, records
from tests.mariadb import IS_MYSQL, WITHOUT_NAMES, embedded, mariadb_only, mysql_only

pytestmark = pytest.mark.server


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(20))")
    return shop


def codes(shop: Shop, *tasks: TableTask) -> list[str]:
    return [problem.code for problem in shop.source.check(tasks)]


def test_a_server_with_row_images_column_names_and_rights_is_ready(shop: Shop) -> None:
    assert shop.source.check([shop.task("t")]) == []


def test_every_wrong_setting_is_reported_with_its_remedy() -> None:
    settings = {
        "binlog_format": "MIXED",
        "binlog_row_image": "MINIMAL",
        "binlog_row_metadata": WITHOUT_NAMES,
        "binlog_expire_logs_seconds": "3600",
        **({"binlog_order_commits": "OFF"} if IS_MYSQL else {"mysql56_temporal_format": "OFF"}),
    }
    with embedded(**settings) as server:
        shop = Shop(server)
        shop.sql("CREATE TABLE t (id int PRIMARY KEY, n int)")
        task = shop.task("t", where=[Condition("n", Comparison.EQUAL, 1)])
        problems = {problem.code: problem for problem in shop.source.check([task])}
        partly = shop.source.check([shop.task("t", snapshot=Snapshot(SnapshotMode.NEVER))])
    assert [problem.what for problem in partly if problem.code == "SRC009"]
    of_this_server = "SRC095" if IS_MYSQL else "SRC094"
    assert problems.keys() == {"SRC091", "SRC092", "SRC093", of_this_server, "SRC096", "SRC009"}
    assert problems["SRC091"].do.startswith("SET GLOBAL binlog_format = 'ROW';")
    assert problems["SRC096"].found == "0.0 days"


def test_a_server_without_binlog_is_refused() -> None:
    with embedded(skip_log_bin="1") as server:
        shop = object.__new__(Shop)
        shop.server, shop.name = server, "mysql"
        assert [problem.code for problem in shop.source_as(server.user, server.password).check([])] == ["SRC090"]


def test_missing_rights_are_reported_one_after_the_other(shop: Shop) -> None:
    login = f"reader_{shop.name}"
    shop.sql(f"CREATE USER {login}@'127.0.0.1' IDENTIFIED BY 'sesame-42'")
    task = shop.task("t")
    source = shop.source_as(login, "sesame-42")
    seen = []
    for _ in range(6):
        problems = source.check([task])
        if not problems:
            break
        assert "sesame-42" not in str(problems)
        seen.append([problem.code for problem in problems])
        shop.sql(*(problem.do.removesuffix(";") for problem in problems if problem.do.startswith("GRANT")))
        if any(problem.code == "SRC019" for problem in problems):
            shop.sql(f"GRANT SELECT (id) ON {task.table} TO {login}@'127.0.0.1'")
    assert seen == [["SRC011", "SRC019"], ["SRC011", "SRC010"]] and source.check([task]) == []


def test_tables_without_key_are_refused_and_a_unique_key_suffices(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE none (a int, UNIQUE (a))",
        "CREATE TABLE some (a int, b int NOT NULL, c int NOT NULL, UNIQUE x (a), UNIQUE y (c, b))",
    )
    assert codes(shop, shop.task("none"), shop.task("some")) == ["SRC098"]
    assert shop.task("some").schema.key == ("c", "b")
    assert codes(shop, shop.task("none", key=["a"])) == ["SRC170"], "its column may be NULL in several rows"
    assert codes(shop, shop.task("some", key=["b", "c"])) == []


def test_filters_that_are_never_true_are_reported(shop: Shop) -> None:
    assert codes(shop, shop.task("t", where=[Condition("id", Comparison.EQUAL, "x")])) == ["SRC018"]


def test_the_id_of_another_server_is_refused(shop: Shop) -> None:
    shop.source = shop.source_as(shop.server.user, shop.server.password, server_id=1)
    assert codes(shop, shop.task("t")) == ["SRC097"]


def test_a_missing_table_is_reported(shop: Shop) -> None:
    task = shop.task("t")
    shop.sql("DROP TABLE t")
    assert codes(shop, task) == ["SRC019"]


@mariadb_only
def test_foreign_keys_that_change_rows_are_reported_because_the_binlog_lacks_such_changes(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, parent int, CONSTRAINT of_parent FOREIGN KEY (parent)"
        " REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE other (id int PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent (id))",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (1, 1)",
    )
    tasks = [shop.task("parent"), shop.task("child"), shop.task("other")]
    (problem,) = shop.source.check(tasks)
    assert (problem.code, problem.where) == ("SRC104", shop.table("child")) and "DROP FOREIGN KEY" in problem.do
    shop.window(*tasks)
    shop.sql("DELETE FROM parent")
    assert {record.table for record in records(shop.window(*tasks))} == {shop.table("parent")}


@mysql_only
def test_a_server_that_logs_what_foreign_keys_change_is_ready(shop: Shop) -> None:
    """MySQL does since 9.6."""
    shop.sql(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES parent (id)"
        " ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
    )
    tasks = [shop.task("parent"), shop.task("child")]
    assert shop.source.check(tasks) == [] and shop.copied(tasks[1])[1].keys() == {"[1]", "[2]"}
    shop.window(*tasks)
    shop.sql("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 3")
    children = [record for record in records(shop.window(*tasks)) if record.table == shop.table("child")]
    assert [(record.op, record.key_before or record.key) for record in children] == [
        ("delete", "[1]"),
        ("update", "[2]"),
    ]

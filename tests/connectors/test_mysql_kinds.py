"""Tables and columns of which a copy would not be exact are refused with a reason; nothing is left out in silence."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn, is_known
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Columns
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes, records
from tests.mariadb import IS_MYSQL, mariadb_only, mysql_only

pytestmark = pytest.mark.server


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, word varchar(20))")
    return shop


def refusal(shop: Shop, task: TableTask) -> Problem:
    """The same for a run and for ``check``."""
    refused = shop.source.refused([task, shop.task("t")])
    assert refused.keys() == {task.table}
    assert refused[task.table] in shop.source.check([task])
    return refused[task.table]


@mariadb_only
@pytest.mark.parametrize(
    "columns",
    [
        "id int PRIMARY KEY, word varchar(9)) WITH SYSTEM VERSIONING",
        "id int PRIMARY KEY, a timestamp(6) GENERATED ALWAYS AS ROW START, b timestamp(6) GENERATED ALWAYS AS ROW END,"
        " PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING",
    ],
)
def test_a_table_with_system_versioning_is_listed_and_refused(shop: Shop, columns: str) -> None:
    shop.sql(f"CREATE TABLE kept ({columns}")
    problem = refusal(shop, shop.task("kept"))
    assert (problem.code, problem.found) == ("SRC151", "WITH SYSTEM VERSIONING")
    assert problem.do.startswith(f"ALTER TABLE `{shop.name}`.`kept` DROP SYSTEM VERSIONING;")


@mariadb_only
@pytest.mark.parametrize("kind", ["datetime(3)", "timestamp(6) NULL", "time(2)"])
def test_fractions_in_the_format_of_old_tables_are_refused_until_the_table_is_rebuilt(shop: Shop, kind: str) -> None:
    """A column that is not copied has its bytes in each row, too. The format is that of the table, whatever the server
    makes now."""
    shop.sql("SET GLOBAL mysql56_temporal_format = OFF")
    shop.sql(
        f"CREATE TABLE old (id int PRIMARY KEY, at {kind}, whole datetime)", "CREATE TABLE whole (id int, at time)"
    )
    shop.sql("SET GLOBAL mysql56_temporal_format = ON")
    for task in (shop.task("old"), shop.task("old", columns=Columns(exclude=("at",)))):
        problem = refusal(shop, task)
        assert problem.code == "SRC152" and problem.found == f"at ({kind.removesuffix(' NULL')} /* mariadb-5.3 */)"
    assert shop.source.refused([shop.task("whole", key=())]).get("whole") is None
    shop.sql(f"ALTER TABLE {shop.name}.old FORCE")
    assert f"ALTER TABLE `{shop.name}`.`old` FORCE" in problem.do and shop.source.refused([shop.task("old")]) == {}
    task = shop.task("old")
    shop.window(task)
    shop.sql("INSERT INTO old VALUES (1, '2026-01-02 03:04:05.67', '2026-01-02 03:04:05')")
    items = shop.window(task)
    assert holes(items) == [] and len(records(items)) == 1


@mariadb_only
def test_a_table_that_had_system_versioning_for_a_while_is_a_hole(shop: Shop) -> None:
    shop.sql("INSERT INTO t VALUES (1, 'a')")
    held = shop.task("t").schema
    shop.window(shop.task("t"))
    shop.sql("ALTER TABLE t ADD SYSTEM VERSIONING", "UPDATE t SET word = 'b'", "ALTER TABLE t DROP SYSTEM VERSIONING")
    assert "SYSTEM VERSIONING" in holes(shop.window(shop.task("t", held)))[0][1]


@mariadb_only
def test_a_table_whose_rows_are_in_other_tables_is_refused(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE part (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE parts (id int PRIMARY KEY) ENGINE = MERGE UNION = (part)",
    )
    assert shop.source.refused([shop.task("part")]) == {}
    problem = refusal(shop, shop.task("parts"))
    assert (problem.code, problem.found) == ("SRC151", "base table, engine MRG_MyISAM")


def test_views_and_sequences_are_no_tables_and_are_named(shop: Shop) -> None:
    shop.sql("CREATE VIEW v AS SELECT * FROM t", "CREATE TEMPORARY TABLE tmp (id int PRIMARY KEY)")
    expected = {shop.table("v"): OtherKind("a view")}
    if not IS_MYSQL:
        shop.sql("CREATE SEQUENCE s")
        expected[shop.table("s")] = OtherKind("a sequence")
    assert shop.source.other_kinds() == expected
    assert [schema.table for schema in shop.source.tables()] == [shop.table("t")]


@mysql_only
def test_a_generated_column_as_the_key_is_refused_unless_another_key_is_named(shop: Shop) -> None:
    """MariaDB has no such keys."""
    shop.sql("CREATE TABLE k (doc json, n int NOT NULL, id int AS (n + 1) STORED PRIMARY KEY)")
    problem = refusal(shop, shop.task("k"))
    assert (problem.code, problem.found) == ("SRC153", "key (id)")
    assert shop.source.refused([shop.task("k", key=["n"])]) == {}
    shop.sql("ALTER TABLE k ADD UNIQUE (n)")
    task = shop.task("k")
    assert task.schema.key == ("n",) and shop.source.refused([task]) == {}
    shop.sql("INSERT INTO k (n) VALUES (1)")
    assert [record.key for record in records(shop.window(task))] == ["[1]"]


def test_a_column_of_an_unknown_type_is_refused(shop: Shop) -> None:
    assert not is_known(CatalogColumn("v", "vector", "vector(3)", True), mariadb=True)
    assert is_known(CatalogColumn("v", "vector", "vector(3)", True), mariadb=False)
    assert not is_known(CatalogColumn("x", "xmltype", "xmltype", True), mariadb=True)
    types = "SELECT DISTINCT data_type FROM information_schema.columns WHERE table_schema = DATABASE()"
    assert all(is_known(CatalogColumn("c", kind, kind, True), not IS_MYSQL) for (kind,) in shop.ask(types))


def test_invisible_and_excluded_generated_columns_are_no_reason(shop: Shop) -> None:
    shop.sql("CREATE TABLE i (id int PRIMARY KEY, n int INVISIBLE DEFAULT 1, g int AS (n + 1) VIRTUAL)")
    assert shop.source.refused([shop.task("i"), shop.task("i", columns=Columns(exclude=("n",)))]) == {}

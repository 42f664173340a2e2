"""What ``check`` reports about a database, its capture job and its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source_features import WarnsUsers
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from tests.connectors.sqlserver_database import Shop
from tests.simulators.sqlserver.tables import Col

COLUMNS = (Col("id", "int", False), Col("word", "nvarchar(20)"), Col("f", "float(53)"), Col("doc", "xml"))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.table("dbo.t", *COLUMNS)
    return shop


def codes(shop: Shop, *tasks: object) -> list[str]:
    return sorted(problem.code for problem in shop.source.check(tasks or (shop.task("dbo.t"),)))  # type: ignore[arg-type]


def test_a_prepared_database_has_no_problems(shop: Shop) -> None:
    assert shop.source.check([shop.task("dbo.t")]) == []


def test_the_source_says_that_it_has_never_run_on_a_real_server(shop: Shop) -> None:
    assert isinstance(shop.source, WarnsUsers)
    (warning,) = shop.source.warnings()
    assert warning.code == "SRC120" and "never run against a real SQL Server" in warning.what


def test_settings_of_the_database(shop: Shop) -> None:
    shop.engine.files.execute("UPDATE sys.databases SET snapshot_isolation_state = 0")
    (problem,) = shop.source.check([shop.task("dbo.t")])
    assert problem.do == "ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON;" and problem.code == "SRC122"
    shop.engine.properties["ProductMajorVersion"] = 12
    assert codes(shop) == ["SRC122"], "the properties belong to a session"
    assert codes(shop_of(shop)) == ["SRC012", "SRC122"]
    shop.engine.properties["EngineEdition"] = 8
    assert codes(shop_of(shop)) == ["SRC122"]
    shop.engine.properties |= {"EngineEdition": 5, "ProductMajorVersion": 16}
    assert codes(shop_of(shop)) == ["SRC012", "SRC122"]
    shop.engine.properties["EngineEdition"] = 3
    shop_of(shop)
    shop.capture.disable_database()
    assert codes(shop) == ["SRC121", "SRC122"]


def shop_of(shop: Shop) -> Shop:
    shop.source = shop.open()
    return shop


def test_a_capture_job_that_is_late_or_keeps_changes_for_a_short_time(shop: Shop) -> None:
    shop.engine.pass_time(4000)
    shop.engine.files.execute("UPDATE msdb.cdc_jobs SET retention = 1440")
    late, short = shop.source.check([shop.task("dbo.t")])
    assert (late.code, short.code, short.found) == ("SRC114", "SRC096", "1.0 days")
    shop.client.denied = ["cdc_jobs"]
    assert codes(shop) == ["SRC114"]


def test_tables_and_columns_that_are_not_captured(shop: Shop) -> None:
    table = shop.engine.create_table("dbo.free", COLUMNS, ("id",))
    task = shop.task("dbo.free")
    assert codes(shop, task) == ["SRC115"]
    shop.capture.enable(table, columns=["id", "word"])
    (problem,) = shop.source.check([task])
    assert problem.found == "capture instance dbo_free has no f, doc" and problem.code == "SRC116"
    assert "@capture_instance = N'dbo_free_2'" in problem.do
    assert codes(shop, shop.task("dbo.free", columns=Columns(exclude=("f", "doc")))) == []
    assert codes(shop, replace(task, table="dbo.none")) == ["SRC019"]


def test_tables_that_cannot_be_copied_exactly(shop: Shop) -> None:
    bad = shop.engine.create_table(
        "dbo.bad",
        (Col("id", "int"), Col("v", "sql_variant"), Col("w", "varchar(9)", collation="Chinese_PRC_CI_AI")),
        (),
    )
    bad.partitions = 3
    with shop.engine.writing():
        shop.engine.describe(bad)
    shop.capture.enable(bad)
    assert codes(shop, shop.task("dbo.bad")) == ["SRC098", "SRC117", "SRC118", "SRC119"]
    shop.capture.disable(shop.capture.instances[-1])
    shop.capture.enable(bad, switches=False)
    assert codes(shop, shop.task("dbo.bad", columns=Columns(exclude=("v", "w")))) == ["SRC098"]


def test_a_declared_key_is_proven_by_a_unique_index_that_the_server_enforces(shop: Shop) -> None:
    named = shop.task("dbo.t", key=("id", "word"))
    assert shop.source.check([named]) == [] and shop.source.refused([named]) == {}
    for flag in ("is_disabled", "is_hypothetical", "has_filter"):
        shop.engine.files.execute(f"UPDATE sys.indexes SET {flag} = 1")
        (problem,) = shop.source.check([named])
        assert problem.code == "SRC170" and "(id, word)" in problem.found, flag
        assert problem.do.endswith("CREATE UNIQUE INDEX [unique_t] ON [dbo].[t] ([id], [word]);")
        assert shop.source.refused([named]) == {"dbo.t": problem}
        shop.engine.files.execute(f"UPDATE sys.indexes SET {flag} = 0")
    (problem,) = shop.source.check([shop.task("dbo.t", key=("word",))])
    assert problem.code == "SRC170" and "(id)" in problem.allowed


def test_each_run_asks_what_check_asks_of_a_table(shop: Shop) -> None:
    """But for what the change tables show themselves: no capture, and columns that are not captured."""
    cast = shop.task("dbo.t", columns=Columns(cast={"f": "text"}))
    assert {name: one.code for name, one in shop.source.refused([cast]).items()} == {"dbo.t": "SRC103"}
    shop.engine.files.execute("UPDATE sys.databases SET collation_name = 'Chinese_PRC_CI_AI'")
    shop.table("dbo.texts", Col("id", "int", False), Col("word", "varchar(9)"))
    texts = shop.task("dbo.texts")
    assert shop.source.refused([texts])["dbo.texts"].code == "SRC119"
    assert shop.source.refused([texts]) == {one.table: one for one in shop.source.check([texts])}
    free = shop.engine.create_table("dbo.free", COLUMNS, ("id",))
    task = shop.task("dbo.free")
    assert shop.source.refused([task, replace(task, table="dbo.none")]) == {}
    shop.capture.enable(free, columns=["id", "word"])
    assert codes(shop, task) == ["SRC116"] and shop.source.refused([task]) == {}
    shop.capture.disable_database()
    assert shop.source.refused([cast]) == {}, "the position is lost"


def test_a_run_asks_the_server_all_that_check_asks_but_for_what_it_does_not_depend_on(shop: Shop) -> None:
    """A login that may not read the table fails in the next copy; how long changes stay shows when they are gone."""
    task = shop.task("dbo.t")

    def asked(ask: Callable[[], object]) -> set[str]:
        shop.client.queries.clear()
        ask()
        return {query.partition(",")[0] for query in shop.client.queries}

    def run() -> None:
        shop.source.refused([task])
        shop.source.silent_since()
        shop.window(task)

    checked = asked(lambda: shop.source.check([task]))
    assert checked - asked(run) == {"SELECT TOP (0) [id]", queries.CAPTURE_JOB}


def test_settings_of_a_table_that_cannot_be_kept(shop: Shop) -> None:
    cast = shop.task("dbo.t", columns=Columns(cast={"f": "text"}))
    where = shop.task("dbo.t", where=(Condition("doc", Comparison.IS_NULL), Condition("id", Comparison.EQUAL, "x")))
    assert codes(shop, cast) == ["SRC103"] and codes(shop, where) == ["SRC009", "SRC018"]
    partly = Snapshot(SnapshotMode.SCHEMA_ONLY)
    assert codes(shop, shop.task("dbo.t", snapshot=partly)) == ["SRC009"]
    assert codes(shop, shop.task("dbo.t", columns=Columns(exclude=("doc",)), snapshot=partly)) == []


def test_a_missing_right_has_its_grant(shop: Shop) -> None:
    shop.client.denied = ["FROM [dbo].[t]"]
    (problem,) = shop.source.check([shop.task("dbo.t")])
    assert (problem.code, problem.do) == ("SRC010", "GRANT SELECT ON [dbo].[t] TO [cdc];")
    shop.client.denied = ["cdc.change_tables"]
    (problem,) = shop.source.check([shop.task("dbo.t")])
    assert problem.code == "SRC010" and "denied" in problem.found


def test_only_the_schemas_of_the_definition_are_described(tmp_path: Path) -> None:
    shop = Shop(tmp_path, schemas=("stock",))
    shop.table("dbo.t", *COLUMNS)
    shop.table("stock.t", *COLUMNS)
    assert [schema.table for schema in shop.source.tables()] == ["stock.t"]

"""How polls detect unlogged changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, oracle

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable, polled_table
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_identities
from airflow_cdc_provider.connectors.sources.jdbc_poll.other_rows import OtherRows
from airflow_cdc_provider.connectors.sources.jdbc_poll.undetected import undetected_changes
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.identity import TableIdentity, TablePartition, UnloggedChanges, unlogged_changes
from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type
from tests.connectors.polled_database import images
from tests.connectors.test_jdbc_poll import Shop, ago

NOW = TableIdentity("1", {}, 1, partitions={"7@5": TablePartition("public.top", "7", "5")})


@pytest.mark.parametrize("found", [True, False])
def test_only_changes_of_values_in_rows_of_an_earlier_interval_are_unlogged(found: bool) -> None:
    changes = UnloggedChanges(added=("z",), attached=("7@5",), detached=("public.low",), rewritten=True)
    left = undetected_changes(changes, NOW, lambda column: found and column == "z", lambda oid: found and oid == "7")
    words = ("rows older than column z have values in it", "partition public.top was attached with rows in it")
    assert left == UnloggedChanges(rows=words if found else ())
    assert bool(undetected_changes(replace(changes, recomputed=True), NOW, lambda _: False, lambda _: False).rows)


def test_a_new_column_is_emitted_at_once_and_only_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop.db")
    shop.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL)")
    shop.sql("INSERT INTO t VALUES (1, ?)", ago(7200))
    polling = shop.polling()
    polling.position = polling.source.open_stream(["main.t"])
    assert polling.window(polling.task("main.t")) == []
    shop.sql("ALTER TABLE t ADD z INTEGER")
    ((op, schema),) = images(polling.window(polling.task("main.t")))
    assert op == Operation.SCHEMA and [one["name"] for one in schema["columns"]] == ["id", "updated_at", "z"]
    assert polling.window(polling.task("main.t")) == []
    shop.connection.close()


def test_a_table_that_lost_its_timestamp_column_leaves_its_changes_to_the_reader(tmp_path: Path) -> None:
    """A question that cannot be asked of one table stops no other."""
    shop = Shop(tmp_path / "shop.db")
    shop.sql("CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, updated_at DATETIME NOT NULL)")
    polling = shop.polling()
    position = polling.source.open_stream(["main.t"])
    shop.sql("ALTER TABLE t DROP updated_at")
    shop.sql("ALTER TABLE t ADD changed_at DATETIME")
    polling.source.tables()
    changes = UnloggedChanges(added=("changed_at",))
    assert polling.source.not_streamed("main.t", position, NOW, changes, truncated=False) is changes
    shop.connection.close()


SQL_SERVER = """
ATTACH ':memory:' AS sys;
CREATE TABLE sys.schemas (schema_id, name);
CREATE TABLE sys.types (user_type_id, name);
CREATE TABLE sys.tables (object_id, schema_id, name, create_date, max_column_id_used);
CREATE TABLE sys.columns (object_id, column_id, name, system_type_id, scale, collation_name);
INSERT INTO sys.schemas VALUES (1, 'dbo'), (2, 'other');
INSERT INTO sys.types VALUES (56, 'int'), (42, 'datetime2'), (167, 'varchar');
INSERT INTO sys.tables VALUES (7, 1, 't', '2026-01-01 00:00:00.000', 4), (8, 2, 't', '2026-01-01 00:00:00.000', 1);
INSERT INTO sys.columns VALUES (7, 1, 'id', 56, 0, NULL), (7, 2, 'v', 56, 0, NULL),
  (7, 3, 'note', 167, 0, 'Latin1_CI_AS'), (7, 4, 'at', 42, 7, NULL), (8, 1, 'id', 56, 0, NULL);
"""
TYPES = {"id": mssql.INTEGER(), "v": mssql.INTEGER(), "note": mssql.VARCHAR(9), "at": mssql.DATETIME2()}
KINDS = {"id": "int32", "v": "int32", "note": "text", "at": "timestamp"}


class SqlServer:
    """Its catalog, as tables of SQLite that the query reads. Positions are those of the columns that are left."""

    def __init__(self) -> None:
        engine = sa.create_engine("sqlite://")
        self.connection = engine.connect()
        raw: Any = self.connection.connection.driver_connection
        raw.create_function("CONVERT", 3, lambda kind, value, style: value)
        raw.create_function("CONVERT", 2, lambda kind, value: str(value))
        raw.create_function("varchar", 1, lambda length: length)
        raw.executescript(SQL_SERVER)
        engine.dialect.name = "mssql"
        self.before = self.identity(*TYPES)

    def sql(self, statement: str) -> None:
        self.connection.exec_driver_sql(statement)

    @staticmethod
    def schema(*names: str) -> TableSchema:
        return TableSchema("dbo.t", tuple(Column(name, parse_type(KINDS[name])) for name in names), ("id",))

    def identity(self, *names: str) -> TableIdentity:
        table = PolledTable("dbo", "t", self.schema(*names), {name: TYPES[name] for name in names}, frozenset(), {})
        return read_identities(self.connection, {"dbo.t": table})["dbo.t"]

    def changes(self, *names: str) -> UnloggedChanges:
        return unlogged_changes(self.before, self.identity(*names), self.schema(*TYPES), self.schema(*names))


@pytest.fixture
def sql_server() -> Iterator[SqlServer]:
    server = SqlServer()
    yield server
    server.connection.close()


def test_a_dropped_column_of_sql_server_renames_no_other_one(sql_server: SqlServer) -> None:
    assert not sql_server.changes(*TYPES)
    sql_server.sql("DELETE FROM sys.columns WHERE name = 'v'")
    assert not sql_server.changes("id", "note", "at").columns


def test_the_last_column_of_sql_server_that_is_added_again_is_another_one(sql_server: SqlServer) -> None:
    sql_server.sql("UPDATE sys.columns SET column_id = 5 WHERE name = 'at'")
    sql_server.sql("UPDATE sys.tables SET max_column_id_used = 5 WHERE object_id = 7")
    assert sql_server.changes(*TYPES).columns == ("column at was dropped and another one was added under its name",)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE sys.columns SET scale = 3 WHERE name = 'at'", "UPDATE sys.columns SET collation_name = 'Greek_CI_AS'"],
)
def test_a_type_of_sql_server_that_has_other_values_is_another_one(sql_server: SqlServer, statement: str) -> None:
    sql_server.sql(statement)
    assert len(sql_server.changes(*TYPES).columns) == 1


def test_a_table_of_sql_server_that_is_created_again_is_another_one(sql_server: SqlServer) -> None:
    sql_server.sql("UPDATE sys.tables SET create_date = '2026-01-02 00:00:00.000' WHERE object_id = 7")
    assert sql_server.changes(*TYPES).rows == ("the table was replaced by another one of the same name",)


def test_another_expression_of_a_virtual_column_of_oracle_is_reported() -> None:
    """``ALTER TABLE … MODIFY (v AS (…))`` gives each row another value, and none another timestamp."""
    schema = SqlServer.schema("id", "v")
    before, after = virtual('"ID"+1'), virtual('"ID"*2')
    assert not unlogged_changes(before, virtual('"ID"+1'), schema, schema)
    assert unlogged_changes(before, after, schema, schema).columns == ("the expression of column v changed",)


def virtual(expression: str) -> TableIdentity:
    v = {"name": "v", "type": oracle.NUMBER(9, 0), "nullable": True, "computed": {"sqltext": expression}}
    named = {"name": "id", "type": oracle.NUMBER(9, 0), "nullable": False}
    table = polled_table("shop", "t", [named, v], ("id",), "oracle", OtherRows())
    return read_identities(_OfOracle(), {"shop.t": table})["shop.t"]


def former(identity: TableIdentity) -> TableIdentity:
    """As control records had it that were written before identities had a form."""
    columns = {
        name: {"number": position, "type": column.type.split()[0], "in_rows": True, "length": column.length}
        for position, (name, column) in enumerate(identity.columns.items(), 1)
    }
    record = {"table": "dbo.t", "columns": columns, "last_number": len(columns), "positional": True}
    return from_plain(TableIdentity, record)


def test_an_identity_of_sql_server_in_its_former_form_is_that_of_the_same_table(sql_server: SqlServer) -> None:
    sql_server.before = former(sql_server.before)
    assert not sql_server.changes(*TYPES)
    sql_server.sql("UPDATE sys.columns SET column_id = 9 WHERE name = 'id'")
    assert sql_server.changes(*TYPES).columns == ("columns id, v, note, at changed positions or names",)


def test_another_type_is_found_in_the_former_form(sql_server: SqlServer) -> None:
    known = former(sql_server.before)
    other = replace(known.columns["note"], type="NCHAR")
    sql_server.before = replace(known, columns={**known.columns, "note": other})
    assert len(sql_server.changes(*TYPES).columns) == 1


def test_an_expression_that_the_former_form_lacks_is_no_other_one() -> None:
    schema, now = SqlServer.schema("id", "v"), virtual('"ID"+1')
    assert not unlogged_changes(former(now), now, schema, schema)


def test_sql_server_has_no_expressions(sql_server: SqlServer) -> None:
    """Without a permission the catalog hides them, and an expression cannot be altered without a new column."""
    table = PolledTable("dbo", "t", SqlServer.schema(*TYPES), TYPES, frozenset(), {}, expressions={"v": "([id]+(1))"})
    assert read_identities(sql_server.connection, {"dbo.t": table})["dbo.t"].columns["v"].expression == ""


class _OfOracle(sa.Connection):
    def __init__(self) -> None:
        self.dialect = oracle.dialect()  # type: ignore[no-untyped-call]

"""Tables that are altered between the steps of a copy: an error with a code, and the next run reads them again."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.copied.altered_tables import altered_meanwhile, of_type, require_columns
from airflow_cdc_provider.connectors.sources.mysql import copy as mysql_copy
from airflow_cdc_provider.connectors.sources.mysql.source import MysqlSource
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, unrepresentable_row
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition
from airflow_cdc_provider.core.table.schema import TEXT_OF, Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop
from tests.connectors.polled_database import Polling
from tests.connectors.test_jdbc_poll import ago

INT, BIG, TEXT = (LogicalType(kind) for kind in (Kind.INT32, Kind.INT64, Kind.TEXT))
SCHEMA = TableSchema("s.t", (Column("id", INT), Column("note", TEXT)), ("id",))


def test_a_copy_needs_its_columns_its_key_and_those_of_its_filter() -> None:
    texts = Column(f"{TEXT_OF}note", TEXT)
    require_columns(replace(SCHEMA, columns=(*SCHEMA.columns, texts)), ["id", "note", "other"])
    for present, others, missing in ((["id"], (), "note"), (["note"], (), "id"), (["id", "note"], ("x",), "x")):
        with pytest.raises(SourceUnavailable, match=f"(?s)CPY012.*no column {missing}"):
            require_columns(SCHEMA, present, others)


def test_a_value_that_only_the_present_type_has_is_no_unexpected_error() -> None:
    with pytest.raises(SourceUnavailable, match="CPY012"), of_type("s.t", "n", INT, BIG):
        raise OverflowError("too large")
    with pytest.raises(OverflowError), of_type("s.t", "n", INT, INT):
        raise OverflowError("too large")
    with pytest.raises(Unrepresentable), of_type("s.t", "n", INT, BIG):
        raise Unrepresentable("infinity")


def test_a_split_that_fails_does_not_deny_those_that_are_kept() -> None:
    altered, bad = altered_meanwhile("s.t", "other columns"), unrepresentable_row(SCHEMA, ["note"], "infinity")
    for problem in (*altered.problems, bad):
        assert "splits of a copy that were read are kept" in problem.data


@pytest.mark.server
@pytest.mark.parametrize(
    "statement", ["DROP COLUMN note", "RENAME COLUMN note TO text", "MODIFY n bigint", "MODIFY n varchar(20)"]
)
def test_a_table_of_mariadb_that_is_altered_between_two_splits(mariadb: EmbeddedMariaDB, statement: str) -> None:
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, n int, note text)", "INSERT INTO t VALUES (1, 2, 'a')")
    with shop.source.copy(shop.task("t"), 1, shop.position, 1) as copy:
        shop.sql(f"ALTER TABLE t {statement}", "UPDATE t SET n = 5000000000" if "MODIFY" in statement else "DO 0")
        with pytest.raises(SourceUnavailable, match="CPY012"):
            list(shop.source.read_split(copy.read.splits[0], copy.schema))


@pytest.mark.server
@pytest.mark.parametrize("read", ["catalog", "anchor"])
def test_a_table_of_mariadb_that_gets_a_column_while_its_copy_is_opened(
    mariadb: EmbeddedMariaDB, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """A statement at or below the anchor is not in the stream: older rows would have NULL in the new column."""
    shop = Shop(mariadb)
    shop.sql("CREATE TABLE t (id int PRIMARY KEY, note text)", "INSERT INTO t VALUES (1, 'a')")
    place, name = (MysqlSource, "_table") if read == "catalog" else (mysql_copy, "anchor_of")
    found = getattr(place, name)

    def then_altered(*given: Any) -> Any:
        result = found(*given)
        shop.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS b int", "UPDATE t SET b = 7")
        return result

    task = shop.task("t")
    monkeypatch.setattr(place, name, then_altered)
    with pytest.raises(SourceUnavailable, match="CPY012"), shop.source.copy(task, 1, shop.position, 1):
        pass
    monkeypatch.undo()
    assert shop.copied(shop.task("t"))[1] == {"[1]": {"id": 1, "note": "a", "b": 7}}


def test_a_polled_table_that_loses_a_column_before_or_while_it_is_copied(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as writer:
        writer.execute("CREATE TABLE t (id int NOT NULL PRIMARY KEY, note text, updated_at timestamp NOT NULL)")
        writer.execute("INSERT INTO t VALUES (1, 'a', '2026-01-01 00:00:00')")
    polling = Polling("sqlite", ConnectionInfo("db", schema=str(file)))
    task = polling.task("main.t")
    position = polling.source.open_stream([task.table])
    with polling.source.copy(task, 1, position, 1) as copy, sqlite3.connect(file) as writer:
        writer.execute("ALTER TABLE t DROP COLUMN note")
        again = Polling("sqlite", ConnectionInfo("db", schema=str(file))).source
        with pytest.raises(SourceUnavailable, match=r"(?s)CPY012.*no column note"):
            list(again.read_split(copy.read.splits[0], copy.schema))
        with pytest.raises(SourceUnavailable, match="CPY012"), again.copy(task, 1, position, 1):
            pass


@pytest.mark.parametrize("lost", ["updated_at", "id", "note", "region"])
def test_a_polled_table_that_loses_a_column_between_the_plan_of_a_window_and_its_read(
    tmp_path: Path, lost: str
) -> None:
    """Another process may read the window than has planned it, and describes the table anew."""
    info = ConnectionInfo("db", schema=str(tmp_path / "shop.db"))
    with sqlite3.connect(info.schema) as writer:
        writer.execute("CREATE TABLE t (id int NOT NULL PRIMARY KEY, note text, region text, updated_at timestamp)")
    polling, reader = Polling("sqlite", info), Polling("sqlite", info).source
    where = [Condition("region", Comparison.EQUAL, "north")]
    task = polling.task("main.t", where=where, columns=Columns(exclude=("region",)))
    position = polling.source.open_stream([task.table])
    with sqlite3.connect(info.schema) as writer:
        writer.execute("INSERT INTO t VALUES (1, 'a', 'north', ?)", [ago(30)])
    time.sleep(0.01)  # the clock of SQLite shows milliseconds: an interval between two equal times is empty
    (split,) = polling.source.splits(position, polling.source.status(position, [task.table]).limit)
    with sqlite3.connect(info.schema) as writer:
        writer.execute(f"ALTER TABLE t RENAME COLUMN {lost} TO other")
    with pytest.raises(SourceUnavailable, match=f"(?s)CPY012.*no column {lost}"):
        list(reader.read(split, [task], 1))
    assert reader.refused([task]) == {}, "the reader reports it"

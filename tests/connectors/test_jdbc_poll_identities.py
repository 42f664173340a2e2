"""How polls detect unlogged changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import read_catalog
from airflow_cdc_provider.connectors.sources.jdbc_poll.identities import read_numbers, reflected_identity
from airflow_cdc_provider.connectors.sources.jdbc_poll.undetected import undetected_changes
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.table.identity import TableIdentity, TablePartition, UnloggedChanges
from tests.connectors.conftest import Database
from tests.connectors.polled_database import images
from tests.connectors.test_jdbc_poll import Shop, ago
from tests.connectors.test_jdbc_poll_servers import of

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


@pytest.mark.server
def test_column_numbers_are_not_reused(database: Database) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY, v text)", "ALTER TABLE t DROP v", "ALTER TABLE t ADD v text")
    with of(database).source.database.session() as connection:
        catalog = read_catalog(connection, ["public"])
        numbers = read_numbers(connection, catalog)
    assert isinstance(connection, sa.Connection)
    identity = reflected_identity(catalog["public.t"], numbers["public.t"])
    assert {name: one.number for name, one in identity.columns.items()} == {"id": 1, "v": 3} and not identity.positional

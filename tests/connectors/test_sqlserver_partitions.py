"""Partitioned tables: no change table has the rows that ALTER TABLE … SWITCH moves, so the server must refuse it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import HoleFound
from tests.connectors.sqlserver_database import IDLE_S, Shop, holes
from tests.simulators.sqlserver.tables import Col, Table

COLUMNS = (Col("id", "int", False), Col("word", "nvarchar(20)"), Col("n", "int"))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def partition(shop: Shop, table: Table) -> None:
    table.partitions = 3
    with shop.engine.writing():
        shop.engine.describe(table)


def test_each_statement_for_a_partitioned_table_forbids_switches(shop: Shop) -> None:
    """The server allows them where the statement does not say otherwise."""
    parts = shop.engine.create_table("dbo.parts", COLUMNS, ("id",))
    partition(shop, parts)
    task = shop.task("dbo.parts")
    (uncaptured,) = shop.source.check([task])
    outside = shop.status("dbo.parts").outside["dbo.parts"]
    shop.capture.enable(parts, columns=["id"])
    lacking, switching = shop.source.check([task])
    assert [one.code for one in (uncaptured, outside, lacking, switching)] == ["SRC115", "SRC115", "SRC116", "SRC117"]
    for problem in (uncaptured, outside, lacking, switching):
        assert "@allow_partition_switch = 0" in problem.do, problem.code


def test_a_capture_that_lets_partitions_be_switched_is_a_hole(shop: Shop) -> None:
    """A switch moves rows that no change table has."""
    table = shop.engine.create_table("dbo.t", COLUMNS, ("id",))
    shop.capture.enable(table, switches=False)
    partition(shop, table)
    shop.sleep(IDLE_S)
    shop.position = shop.source.open_stream([])
    shop.insert(table, {"id": 1})
    task = shop.task("dbo.t")
    assert shop.source.check([task]) == [] and holes(shop.window(task)) == []
    shop.capture.enable(table, "dbo_t_2")
    assert shop.source.refused([task])["dbo.t"].code == "SRC117"
    assert shop.source.refused([task]) == {one.table: one for one in shop.source.check([task])}
    shop.insert(table, {"id": 2})
    assert [detail for _, detail in holes(shop.window(task))] == [
        "capture instance dbo_t_2 lets partitions be switched"
    ]
    shop.capture.disable(shop.capture.instances[0])
    shop.capture.enable(table, "dbo_t_3", switches=False)
    assert shop.source.refused([task]) == {}
    shop.insert(table, {"id": 3})
    (hole,) = [item for item in shop.window(task) if isinstance(item, HoleFound)]
    copy, _ = shop.copied(task)
    assert hole.order_key <= copy.floor
    shop.insert(table, {"id": 4})
    assert holes(shop.window(task)) == []


def test_a_table_that_is_partitioned_later_is_refused(shop: Shop) -> None:
    table = shop.table("dbo.t", *COLUMNS)
    task = shop.task("dbo.t")
    assert shop.source.refused([task]) == {}
    partition(shop, table)
    assert shop.source.refused([task])["dbo.t"].code == "SRC117"

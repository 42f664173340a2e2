"""Replicators of tables with histories are renamed, moved and deleted; each dies where it processes the copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.control import delete_replicator, move_staging, rename_replicator
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.staging import transfer
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.provider.test_delete import Killed, killed_at, yaml_of
from tests.provider.test_rename_and_move import renamed

COPIES = ["public.a", "public.a:history", "public.b"]
RULES = (
    TableRule("public.a", history=History.SCD2, history_target="a_history"),
    TableRule("public.b", history=History.LOG),
)
TABLES = """\
  - {source: public.a, history: scd2, history_target: a_history}
  - {source: public.b, history: log}
"""


@pytest.fixture
def shop(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> RunHarness:
    """Every copy is replicating. Airflow runs no task."""
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: [])
    path = yaml_of(harness)
    head, listed, rest = path.read_text().partition("  - source: public.*\n")
    assert listed
    path.write_text(head + TABLES + rest)
    harness.definition = replace(harness.definition, tables=RULES)
    replicated(harness)
    assert sorted(harness.state.tables("shop")) == COPIES
    return harness


def goes_on(harness: RunHarness) -> None:
    """A change of each table is applied to all copies, and none is made again."""
    harness.source.change("public.a", "public.b")
    decision = harness.open("next")
    assert decision.plan.copy == () and decision.stop is None
    harness.spark(decision)
    assert harness.close("next").problems == ()
    found = {copy: harness.control(copy) for copy in COPIES}
    assert {(one.replicator, one.window) for one in found.values()} == {(harness.definition.name, 2)}


@pytest.mark.parametrize("name", ["rename.table", "rename.rows"])
def test_a_renaming_that_dies_keeps_every_history(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as patch:
        for module in (rename_replicator, transfer):
            patch.setattr(module, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("rename", "shop", "mall")
    assert cdc("rename", "shop", "mall").code == 0
    renamed(shop)
    assert (sorted(shop.state.tables("mall")), shop.state.tables("shop")) == (COPIES, {})
    goes_on(shop)


@pytest.mark.parametrize("name", ["move.copied", "move.switched"])
def test_a_move_that_dies_keeps_every_history(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    location = f"{shop.folder}/elsewhere"
    with monkeypatch.context() as patch:
        for module in (move_staging, transfer):
            patch.setattr(module, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("move", "shop", "--staging", location)
    assert cdc("move", "shop", "--staging", location).code == 0
    shop.definition = replace(shop.definition, staging=replace(shop.definition.staging, location=location))
    goes_on(shop)


@pytest.mark.parametrize("name", ["delete.fenced", "delete.dropped"])
def test_a_deletion_that_dies_drops_every_history_with_its_copy(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lake = shop.folder / "lake"
    assert {path.name for path in lake.iterdir()} >= {"a_history", "public_a", "public_b"}
    with monkeypatch.context() as patch:
        patch.setattr(delete_replicator, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("delete", "shop", "--drop-copies", "--yes", "shop")
    assert cdc("delete", "shop", "--yes", "shop").code == 0
    assert [*lake.iterdir()] == [] and shop.state.tables("shop") == {}


def test_a_deletion_leaves_copies_and_histories_that_are_to_stay(cdc: CommandLine, shop: RunHarness) -> None:
    assert cdc("delete", "shop", "--yes", "shop").code == 0
    assert {shop.control(copy).state.reason for copy in COPIES} == {"the replicator was deleted"}

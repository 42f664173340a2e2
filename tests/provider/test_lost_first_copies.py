"""First copies that did not finish before the state store was lost: their tables are not taken for new ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.copy_progress import paused_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.table_policy import OnNewTable
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.state.store import StateStore
from tests.provider.command_line import as_listed
from tests.provider.run_harness import RunHarness, schema

A, B, C = "public.a", "public.b", "public.c"


@pytest.fixture(params=[OnNewTable.IGNORE, OnNewTable.ASK])
def shop(harness: RunHarness, request: pytest.FixtureRequest) -> RunHarness:
    harness.definition = replace(as_listed(harness).definition, new_tables=request.param)
    return harness


def begun(shop: RunHarness, *copied: str) -> None:
    """A first run in which only these copies finish."""
    decision = shop.open("r1")
    assert decision.plan.copy == (A, B)
    shop.copy(decision.plan, "snapshot", copied, TableState.REPLICATING)
    shop.close("r1")


def lose_the_store(shop: RunHarness) -> None:
    shop.state = StateStore(f"sqlite:///{shop.folder}/other.db")


def create_c(shop: RunHarness) -> None:
    shop.source.write(tables=[to_plain(schema(table)) for table in (A, B, C)])


def test_a_first_copy_that_did_not_finish_is_made_after_a_rebuild(shop: RunHarness) -> None:
    begun(shop, A)
    lose_the_store(shop)
    rebuild_index(shop.replicator, "ann")
    create_c(shop)
    decision = shop.open("r2")
    assert decision.plan.copy == (B,) and [one.table for one in decision.new] == [C]


def test_first_copies_are_made_if_none_had_finished(shop: RunHarness) -> None:
    begun(shop)
    lose_the_store(shop)
    create_c(shop)
    decision = shop.open("r2")
    assert decision.plan.copy == (A, B) and [one.table for one in decision.new] == [C]


def test_a_paused_first_copy_of_a_later_table_stays_paused(shop: RunHarness) -> None:
    """No window was sealed since its pause."""
    begun(shop, A, B)
    create_c(shop)
    policy = shop.definition.new_tables
    shop.definition = replace(shop.definition, new_tables=OnNewTable.COPY)
    assert shop.open("r2").plan.copy == (C,)
    shop.close("r2")
    shop.request(CommandKind.PAUSE, C)
    shop.run("r3")
    assert shop.replicator.log.store.exists(paused_path(C))
    lose_the_store(shop)
    rebuild_index(shop.replicator, "ann")
    shop.definition = replace(shop.definition, new_tables=policy)
    assert shop.open("r4").new == ()
    assert shop.state.tables("shop")[C].state is TableState.PAUSED


def test_a_table_that_was_not_copied_stays_so_after_a_rebuild(shop: RunHarness) -> None:
    begun(shop, A, B)
    create_c(shop)
    shop.source.change(A)
    shop.run("r2")
    lose_the_store(shop)
    rebuild_index(shop.replicator, "ann")
    assert [one.table for one in shop.open("r3").new] == [C]

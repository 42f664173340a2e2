"""What becomes of a copy whose drop has begun and not ended."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from airflow_cdc_provider.control import begun_drops, open_window
from airflow_cdc_provider.control.drop_marks import DropMark
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.core.table.states import State, TableState, dropping
from tests.provider.dropped_copies import (
    A,
    B,
    Killed,
    has_copy,
    killed_in_the_drop,
    lake,
    list_tables,
    lock,
    rebuilt,
    row,
    without_b,
)
from tests.provider.run_harness import RunHarness


@pytest.fixture
def shop(harness: RunHarness) -> RunHarness:
    return without_b(harness)


def killed_at(monkeypatch: pytest.MonkeyPatch, shop: RunHarness, module: ModuleType, name: str, run: str) -> None:
    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module, name, kill)
        with pytest.raises(Killed):
            shop.open(run)
    for lane in Lane:
        shop.state.release("shop", lane, run)


@pytest.mark.parametrize("module", [begun_drops, open_window])
def test_a_table_that_is_back_is_copied_anew_wherever_its_drop_died(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, module: ModuleType
) -> None:
    """The copy is gone with everything that it had in the target; the index does not say so yet, or already does."""
    killed_at(monkeypatch, shop, module, "dropped_row" if module is begun_drops else "opening_rows", "r2")
    list_tables(shop, A, B)
    decision = shop.open("r3")
    assert decision.plan.copy == (B,)
    shop.spark(decision)
    assert shop.close("r3").problems == () and row(shop).state is TableState.REPLICATING
    drops_no_copy_in_an_outage(shop)


@pytest.mark.parametrize("how", ["before", "amid"])
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_copy_that_is_to_be_kept_when_parts_may_be_gone_is_named(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, how: str, is_listed: bool
) -> None:
    """A table whose first files are deleted can be read as before."""
    killed_in_the_drop(shop, monkeypatch, how)
    drop, rules = shop.definition, (TableRule("public.*"), TableRule(B, dropped_tables=OnDroppedTable.KEEP))
    shop.definition = replace(shop.definition, tables=rules)
    list_tables(shop, A, *([B] if is_listed else []))
    for run in ("r3", "r4"):
        (problem,) = shop.run(run).problems
        assert problem.code == "RUN002" and "it may be dropped in part" in problem.what
        assert "set `dropped_tables: drop` again" in problem.do and has_copy(shop)
    shop.definition = drop
    assert shop.open("r5").plan.copy == ((B,) if is_listed else ()) and not has_copy(shop)


@pytest.mark.parametrize("name", [TableState.PAUSED, TableState.RESYNCING, TableState.BLOCKED])
def test_a_copy_that_is_taken_back_is_what_it_was(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, name: TableState
) -> None:
    control = shop.control(B)
    state = State(name, "2026-01-01T00:00:00.000+00:00", "as it was", "a remedy", set_by="ann", command="7")
    shop.commit("public_b", replace(control, fence=control.fence + 1, state=state))
    killed_in_the_drop(shop, monkeypatch, "fenced")
    rules = (TableRule("public.*"), TableRule(B, dropped_tables=OnDroppedTable.KEEP))
    shop.definition = replace(shop.definition, tables=rules)
    list_tables(shop, A, B)
    shop.open("r3")
    assert shop.control(B).state == state


@pytest.mark.parametrize("kind", [CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND])
def test_a_command_about_a_copy_that_is_being_dropped_is_refused(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, kind: CommandKind
) -> None:
    killed_in_the_drop(shop, monkeypatch, "before")
    list_tables(shop, A, B)
    ended = submit_command(shop.replicator, kind, [B], {"to": "1"}, "", "ann")
    assert ended.status is CommandStatus.FAILED and "public.b is being dropped" in ended.outcome
    assert shop.open("r3").plan.copy == (B,)


def drops_no_copy_in_an_outage(shop: RunHarness) -> None:
    """The copy lives, and the target does not answer for a moment."""
    lock(shop)
    shop.source.change(A)  # no run takes it from the index
    assert shop.open("outage").plan.copy == () and has_copy(shop)
    shop.close("outage")
    lake(shop).store.delete("public_b/locked")
    assert shop.run("after").problems == () and shop.control(B).state.name is TableState.REPLICATING


def test_a_copy_that_others_have_restored_is_not_marked_any_more(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in_the_drop(shop, monkeypatch, "before")
    list_tables(shop, A, B)
    control = shop.control(B)
    state = State(TableState.REPLICATING, control.state.since)
    shop.commit("public_b", replace(control, fence=control.fence + 1, state=state))
    assert shop.run("r3").problems == ()
    drops_no_copy_in_an_outage(shop)


def test_a_new_copy_of_a_table_is_not_marked(shop: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in_the_drop(shop, monkeypatch, "after")
    rebuilt(shop)
    list_tables(shop, A, B)
    decision = shop.open("r3")
    assert decision.plan.copy == (B,)
    shop.spark(decision)
    assert shop.close("r3").problems == ()
    drops_no_copy_in_an_outage(shop)


def test_a_copy_of_which_nothing_is_left_cannot_be_kept(shop: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in_the_drop(shop, monkeypatch, "after")
    rules = (TableRule("public.*"), TableRule(B, dropped_tables=OnDroppedTable.KEEP))
    shop.definition = replace(shop.definition, tables=rules)
    list_tables(shop, A, B)
    assert shop.open("r3").plan.copy == (B,)


@pytest.mark.parametrize(
    ("identity", "fence", "is_dropping", "of_the_mark"),
    [
        ("a", 3, True, True),
        ("a", 4, True, True),  # taken over by another state store
        ("a", 2, False, True),  # the newest files of its log are gone
        ("a", 4, False, False),  # restored by others
        ("b", 3, True, False),
    ],
)
def test_a_mark_names_one_drop_of_one_copy(
    shop: RunHarness, identity: str, fence: int, is_dropping: bool, of_the_mark: bool
) -> None:
    current = shop.replicator.targets.state(B, "public_b")
    assert current.control is not None
    state = dropping("2026-01-01T00:00:00Z", "r1") if is_dropping else current.control.state
    found = replace(current, identity=identity, control=replace(current.control, fence=fence, state=state))
    assert DropMark("a", 3).is_of(found) is of_the_mark

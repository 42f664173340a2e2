"""``dropped_tables: drop``: a copy counts as dropped once it is, whatever interrupts that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control import begun_drops
from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.errors import Blocked, CdcError, TargetUnavailable
from airflow_cdc_provider.core.spec import selection
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.core.table.states import TableState, drops_copy
from tests.provider.dropped_copies import (
    HOW,
    A,
    B,
    has_copy,
    killed_in_the_drop,
    lake,
    list_tables,
    lock,
    rebuilt,
    row,
    without_b,
)
from tests.provider.run_harness import FileSource, LoggedFileTarget, RunHarness

UNANSWERED = "the copy of public.b, which the source dropped, is not dropped yet"


@pytest.fixture
def shop(harness: RunHarness) -> RunHarness:
    return without_b(harness)


def test_a_copy_that_could_not_be_dropped_is_dropped_by_a_later_run(shop: RunHarness) -> None:
    lock(shop)
    for run in ("r2", "r3"):
        problems = shop.run(run).problems
        assert [(one.code, one.what) for one in problems] == [("RUN002", UNANSWERED)]
        assert (row(shop).state, row(shop).reason) == (TableState.FAILING, UNANSWERED)
    assert row(shop).attempts == 2 and not dry_run(shop.replicator).has_work
    lake(shop).store.delete("public_b/locked")
    assert shop.run("r4").problems == ()
    assert (row(shop).state, row(shop).error, row(shop).attempts) == (TableState.DROPPED, "", 0)
    assert row(shop).reason == "the source dropped it, and its copy was dropped, too" and not has_copy(shop)


def test_a_copy_that_has_a_newer_commit_is_dropped_by_a_later_run(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LoggedFileTarget, "commit", lambda *_: False)
        assert [one.code for one in shop.run("r2").problems] == ["RUN002"]
    assert row(shop).state is TableState.FAILING and has_copy(shop)
    assert shop.run("r3").problems == () and not has_copy(shop)
    assert row(shop).state is TableState.DROPPED


def test_the_copy_of_another_state_store_stays_and_blocks(shop: RunHarness) -> None:
    control = shop.control(B)
    shop.commit("public_b", replace(control, owner="other", fence=control.fence + 1))
    for run in ("r2", "r3"):
        assert [one.code for one in shop.run(run).problems] == ["STA007"]
        assert row(shop).state is TableState.BLOCKED and has_copy(shop)


def test_another_source_without_the_table_drops_no_copy(shop: RunHarness) -> None:
    list_tables(shop)
    shop.source.write(identity={"system": "8"}, slot=None)
    for run in ("r2", "r3"):
        assert "SRC010" in [one.code for one in shop.run(run).problems]
        assert row(shop).state is TableState.BLOCKED and has_copy(shop)
    assert shop.control(B).state.name is TableState.REPLICATING
    list_tables(shop, A)
    shop.source.write(identity={"system": "7"}, slot=100)
    assert shop.run("r4").problems == () and not has_copy(shop)


def test_a_source_that_has_lost_the_stream_drops_no_copy(shop: RunHarness) -> None:
    list_tables(shop)
    shop.source.write(slot=None)
    assert "SRC030" in [one.code for one in shop.run("r2").problems]
    assert row(shop).state is TableState.BLOCKED and has_copy(shop)
    assert shop.control(B).state.name is TableState.REPLICATING


class RenamingSource(FileSource):
    """``b`` is one of its tables under another name, which only its identity shows."""

    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        return identity is None


def test_the_copy_of_a_renamed_table_that_the_index_does_not_know_stays(shop: RunHarness) -> None:
    """The run of its first copy died before it wrote the index."""
    control = shop.control(B)
    shop.commit("public_b", replace(control, fence=control.fence + 1, identity=TableIdentity("7", {}, 0)))
    shop.state.change_tables("shop", lambda rows: [replace(rows[B], state=TableState.SNAPSHOTTING, control=None)])
    shop.source = RenamingSource(shop.source.path)
    for run in ("r2", "r3"):
        assert [one.code for one in shop.run(run).problems] == ["TBL004"]
        assert row(shop).state is TableState.BLOCKED and has_copy(shop)
    assert shop.control(B).state.name is TableState.REPLICATING


def test_a_copy_that_the_target_does_not_have_is_not_called_dropped(shop: RunHarness) -> None:
    lake(shop).drop("public_b", "")
    assert shop.run("r2").problems == ()
    assert (row(shop).state, row(shop).reason) == (
        TableState.DROPPED,
        "the source dropped it; the target has no copy of it",
    )


def test_a_run_without_the_copy_lane_drops_no_copy(shop: RunHarness) -> None:
    assert shop.state.acquire("shop", Lane.COPY, "another run", 900)
    assert shop.run("r2").problems == () and has_copy(shop)
    assert row(shop).state is TableState.REPLICATING and not drops_copy(shop.control(B).state)
    shop.state.release("shop", Lane.COPY, "another run")
    assert shop.run("r3").problems == () and not has_copy(shop)
    assert row(shop).reason == "the source dropped it, and its copy was dropped, too"


@pytest.mark.parametrize("how", HOW)
def test_an_interrupted_drop_is_finished(shop: RunHarness, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    killed_in_the_drop(shop, monkeypatch, how)
    assert shop.run("r3").problems == () and not has_copy(shop)
    assert row(shop).reason == "the source dropped it, and its copy was dropped, too"
    kinds = [one.kind for one in shop.replicator.log.decisions()]
    assert kinds == [DecisionKind.DROP_COPY]


@pytest.mark.parametrize("how", HOW)
def test_a_table_that_is_back_after_an_interrupted_drop_is_copied_anew(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    killed_in_the_drop(shop, monkeypatch, how)
    list_tables(shop, A, B)
    assert dry_run(shop.replicator).has_work is (how != "amid"), "a run is no help where the target does not answer"
    decision = shop.open("r3")
    assert decision.plan.copy == (B,)
    shop.spark(decision)
    assert shop.close("r3").problems == () and row(shop).state is TableState.REPLICATING
    shop.source.change(B)
    assert shop.run("r4").problems == () and shop.control(B).state.name is TableState.REPLICATING


@pytest.mark.parametrize("has_one", [True, False])
def test_a_run_that_cannot_select_its_tables_shows_what_became_of_a_copy(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, has_one: bool
) -> None:
    if not has_one:
        lake(shop).drop("public_b", "")
    with monkeypatch.context() as patched:
        patched.setattr(selection, "MAX_TABLES", 0)
        assert [one.code for one in shop.run("r2").problems] == ["DEF024"]
    assert row(shop).state is TableState.DROPPED and not has_copy(shop)
    list_tables(shop, A, B)
    assert shop.open("r3").plan.copy == (B,)


VIEW = Blocked.of("TGT066", "a view depends on the table")
OUTAGE = TargetUnavailable.of("TGT010", "the lake does not answer")


def refuse_drops(monkeypatch: pytest.MonkeyPatch, error: CdcError) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(LoggedFileTarget, "drop", refuse)


@pytest.mark.parametrize("error", [OUTAGE, VIEW])
def test_a_table_that_is_back_waits_for_the_target_that_has_its_copy(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, error: CdcError
) -> None:
    killed_in_the_drop(shop, monkeypatch, "before")
    list_tables(shop, A, B)
    with monkeypatch.context() as patched:
        refuse_drops(patched, error)
        assert [one.code for one in shop.run("r3").problems] == ["RUN002"]
        assert row(shop).state is TableState.FAILING and has_copy(shop)
        assert error.problems[0].what in row(shop).error
        assert not dry_run(shop.replicator).has_work, "it could only fail again"
        shop.source.change(A)
        shop.run("r4")
        assert shop.control(A).window == 2, "the other table goes on"
    assert shop.open("r5").plan.copy == (B,)


def test_a_view_on_the_copy_blocks_its_drop_and_nothing_else(shop: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        refuse_drops(patched, VIEW)
        shop.source.change(A)
        assert [one.code for one in shop.run("r2").problems] == ["TGT066"]
        assert row(shop).state is TableState.BLOCKED and shop.control(A).window == 2
    assert shop.run("r3").problems == () and not has_copy(shop)


def test_a_copy_that_is_to_be_kept_meanwhile_is_kept(shop: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in_the_drop(shop, monkeypatch, "fenced")
    rules = (TableRule("public.*"), TableRule(B, dropped_tables=OnDroppedTable.KEEP))
    shop.definition = replace(shop.definition, tables=rules)
    assert shop.run("r3").problems == () and row(shop).state is TableState.DROPPED
    list_tables(shop, A, B)
    assert dry_run(shop.replicator).has_work
    assert shop.open("r4").plan.copy == () and has_copy(shop)
    assert shop.control(B).state.name is TableState.REPLICATING


def test_the_rows_of_other_tables_are_not_dropped_with_those_of_one(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = LoggedFileTarget.state
    monkeypatch.setattr(LoggedFileTarget, "state", lambda *arguments: replace(state(*arguments), shared=True))
    assert [one.code for one in shop.run("r2").problems] == ["DEF085"]
    assert row(shop).state is TableState.BLOCKED and "rows of other tables" in row(shop).reason and has_copy(shop)


def test_a_fence_that_was_only_claimed_drops_no_copy(shop: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is back, and its copy goes on; then the target does not answer for a moment."""
    with monkeypatch.context() as patched:
        patched.setattr(LoggedFileTarget, "commit", lambda *_: False)
        shop.run("r2")
    assert has_copy(shop)
    list_tables(shop, A, B)
    shop.run("r3")
    lock(shop)
    shop.run("r4")
    lake(shop).store.delete("public_b/locked")
    assert shop.run("r5").problems == () and has_copy(shop)
    assert shop.control(B).state.name is TableState.REPLICATING and shop.control(B).attempt.startswith("snapshot")


def test_a_settled_drop_fails_no_run_after_a_rebuild(shop: RunHarness) -> None:
    assert shop.run("r2").problems == ()
    rebuilt(shop)
    assert B not in shop.state.tables("shop")
    assert shop.run("r3").problems == ()
    shop.definition = replace(shop.definition, tables=(TableRule(A), TableRule(B)))
    assert [one.code for one in shop.run("r4").problems] == ["DEF041"]


@pytest.mark.parametrize("how", HOW)
def test_a_drop_that_did_not_finish_is_finished_after_a_rebuild(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    killed_in_the_drop(shop, monkeypatch, how)
    rebuilt(shop)
    assert row(shop).state is TableState.PAUSED
    assert shop.run("r3").problems == () and not has_copy(shop)
    assert row(shop).state is TableState.DROPPED and begun_drops.marked_copies(shop.replicator, [B]) == {}

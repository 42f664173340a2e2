"""Which copies a resync still has to make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_decision import decide
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.table.states import TableState
from tests.core.test_decide import B, command, control, facts, moves, table


def test_a_resync_overrides_problems_that_a_copy_solves_but_not_another_owner() -> None:
    resync = (command(CommandKind.RESYNC, "public.a"),)
    for change in ({"log_id": "l2"}, {"definition_sha256": "d2"}, {"window": 9}):
        decision = decide(facts(table("public.a", control("public.a", **change)), B, commands=resync))
        assert decision.plan.reconcile == ("public.a",)
        assert decision.plan.commands == ("c-resync",)
    decision = decide(facts(table("public.a", control("public.a", owner="o2")), B, commands=resync))
    assert decision.plan.reconcile == ()


def test_a_paused_table_is_not_copied_before_it_is_resumed() -> None:
    resync, paused = (command(CommandKind.RESYNC),), control("public.a", state=TableState.PAUSED)
    decision = decide(facts(table("public.a", paused), B, commands=resync))
    assert moves(decision) == {"public.a": TableAction.PAUSED, "public.b": TableAction.RECONCILE}
    decision = decide(facts(table("public.a", control("public.a")), B, commands=resync))
    assert decision.plan.reconcile == ("public.a", "public.b")


def test_a_resync_that_was_done_is_not_repeated() -> None:
    done = control("public.a", state=TableState.REPLICATING)
    done = replace(done, state=replace(done.state, command="c-resync"))
    decision = decide(facts(table("public.a", done), B, commands=(command(CommandKind.RESYNC),)))
    assert decision.plan.reconcile == ("public.b",)


@pytest.mark.parametrize(
    ("state", "move"),
    [
        (TableState.REPLICATING, TableAction.STREAM),
        (TableState.PAUSED, TableAction.PAUSED),
        (TableState.BLOCKED, TableAction.BLOCKED),
    ],
)
def test_a_copy_that_has_carried_out_a_resync_waits_for_the_others_in_any_state(
    state: TableState, move: TableAction
) -> None:
    """Paused, resumed, or with a question since then."""
    requests = (command(CommandKind.RESYNC), replace(command(CommandKind.RESYNC), id="c-later"))
    done = control("public.a", state=state, resyncs=("c-resync", "c-later"))
    decision = decide(facts(table("public.a", done), B, commands=requests))
    assert moves(decision) == {"public.a": move, "public.b": TableAction.RECONCILE}
    assert decision.table_decisions[1].command == "c-later", "one copy carries out both"
    assert [task.resyncs for task in decision.plan.tables] == [("c-resync", "c-later")] * 2
    decision = decide(facts(table("public.a", replace(done, resyncs=("c-resync",))), B, commands=requests))
    assert moves(decision)["public.a"] is (move if state is TableState.PAUSED else TableAction.RECONCILE)

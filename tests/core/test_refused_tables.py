"""Tables that the source does not let a run copy."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_decision import decide
from airflow_cdc_provider.core.decisions.table_decisions import TableAction
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.unfit import Unfit
from tests.core.test_decide import command, control, facts, log, table

UNFIT = Problem("TGT094", "texts of the table are not compared by their characters", "a")
REFUSED = Problem("SRC151", "a keeps earlier versions of its rows", "a")


@pytest.mark.parametrize("record", [None, control("a"), control("a", state=TableState.RESYNCING)])
def test_a_table_that_the_source_refuses_is_blocked_and_the_others_go_on(record: ControlRecord | None) -> None:
    decision = decide(facts(table("a", record, refused=REFUSED), table("b", control("b"))))
    refused, other = decision.table_decisions
    assert (refused.action, refused.problem) == (TableAction.BLOCKED, REFUSED)
    assert other.action is TableAction.STREAM and "a" not in decision.plan.copy + decision.plan.stream


def test_a_paused_table_stays_paused_whatever_the_source_refuses() -> None:
    paused = table("a", control("a", state=TableState.PAUSED), refused=REFUSED)
    assert decide(facts(paused)).table_decisions[0].action is TableAction.PAUSED


def test_a_stream_is_opened_for_tables_that_can_be_copied_only() -> None:
    empty = log(0)
    assert not decide(facts(table("a", refused=REFUSED), log=empty)).reopen
    assert decide(facts(table("a", refused=REFUSED), table("b"), log=empty)).reopen


@pytest.mark.parametrize("copy_helps", [False, True])
def test_a_copy_whose_table_is_unfit_takes_no_changes_and_the_others_go_on(copy_helps: bool) -> None:
    unfit = table("a", control("a"), unfit=Unfit(UNFIT, copy_helps))
    blocked, other = decide(facts(unfit, table("b", control("b")))).table_decisions
    assert (blocked.action, blocked.problem, other.action) == (TableAction.BLOCKED, UNFIT, TableAction.STREAM)


@pytest.mark.parametrize(("copy_helps", "action"), [(True, TableAction.RECONCILE), (False, TableAction.BLOCKED)])
def test_a_resync_replaces_an_unfit_table_if_that_helps(copy_helps: bool, action: TableAction) -> None:
    unfit = table("a", control("a"), unfit=Unfit(UNFIT, copy_helps))
    assert decide(facts(unfit, commands=(command(CommandKind.RESYNC, "a"),))).table_decisions[0].action is action


def test_an_unfit_table_that_is_paused_stays_paused() -> None:
    paused = table("a", control("a", state=TableState.PAUSED), unfit=Unfit(UNFIT))
    assert decide(facts(paused)).table_decisions[0].action is TableAction.PAUSED

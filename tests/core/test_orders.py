"""What a pause or a resume asks of each table, by the state the table is in."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.pause_resume import TableStatus, plan_state_changes
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState

S = TableState


def standing(state: TableState) -> TableStatus:
    record = ControlRecord("shop", "public.a", "log", "owner", "a", 1, 1, "f", State(state, "2026-01-01"))
    return TableStatus("public.a", "a", record)


def asked(kind: CommandKind, *tables: str) -> Command:
    return Command("c1", "shop", kind, tables, {}, "k", "ann", "2026-01-01")


@pytest.mark.parametrize(
    ("kind", "now", "code"),
    [
        (CommandKind.PAUSE, S.REPLICATING, ""),
        (CommandKind.PAUSE, S.BLOCKED, ""),
        (CommandKind.PAUSE, S.RESYNCING, "CMD004"),
        (CommandKind.PAUSE, S.REWINDING, "CMD001"),
        (CommandKind.RESUME, S.PAUSED, ""),
        (CommandKind.RESUME, S.BLOCKED, ""),
        (CommandKind.RESUME, S.RESYNCING, "CMD004"),
    ],
)
def test_an_order_is_a_state_or_says_why_not(kind: CommandKind, now: TableState, code: str) -> None:
    (order,) = plan_state_changes(asked(kind), [standing(now)], "2026-01-02")
    assert (order.refusal.code if order.refusal else "") == code
    wanted = S.PAUSED if kind is CommandKind.PAUSE else S.REPLICATING
    assert (order.state.name if order.state else None) == (None if code else wanted)


@pytest.mark.parametrize(("kind", "now"), [(CommandKind.PAUSE, S.PAUSED), (CommandKind.RESUME, S.REPLICATING)])
def test_a_table_that_is_there_already_is_left_alone(kind: CommandKind, now: TableState) -> None:
    (order,) = plan_state_changes(asked(kind), [standing(now)], "2026-01-02")
    assert (order.state, order.refusal) == (None, None)


def test_a_table_without_a_copy_and_one_that_is_not_there_are_refused_by_name() -> None:
    found = plan_state_changes(
        asked(CommandKind.PAUSE, "public.a", "public.z"), [TableStatus("public.a", "a", None)], "2026-01-02"
    )
    assert [(order.table, order.refusal.code) for order in found if order.refusal] == [
        ("public.a", "CMD003"),
        ("public.z", "CMD005"),
    ]

"""What a pause or a resume changes in each table, by the state of the table."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.pause_resume import TableStatus, plan_state_changes
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState

S = TableState


def status(state: TableState) -> TableStatus:
    record = ControlRecord("shop", "public.a", "log", "owner", "a", 1, 1, "f", State(state, "2026-01-01"))
    return TableStatus("public.a", "a", record)


def command(kind: CommandKind, *tables: str) -> Command:
    return Command("c1", "shop", kind, tables, {}, "k", "ann", "2026-01-01")


@pytest.mark.parametrize(
    ("kind", "now", "code"),
    [
        (CommandKind.PAUSE, S.REPLICATING, ""),
        (CommandKind.PAUSE, S.BLOCKED, ""),
        (CommandKind.PAUSE, S.RESYNCING, "CMD004"),
        (CommandKind.PAUSE, S.REWINDING, "CMD004"),
        (CommandKind.RESUME, S.PAUSED, ""),
        (CommandKind.RESUME, S.BLOCKED, ""),
        (CommandKind.RESUME, S.RESYNCING, "CMD004"),
        (CommandKind.RESUME, S.REWINDING, "CMD004"),
    ],
)
def test_a_command_gives_a_new_state_or_the_reason_of_its_refusal(
    kind: CommandKind, now: TableState, code: str
) -> None:
    (change,) = plan_state_changes(command(kind), [status(now)], "2026-01-02")
    assert (change.refusal.code if change.refusal else "") == code
    wanted = S.PAUSED if kind is CommandKind.PAUSE else S.REPLICATING
    assert (change.state.name if change.state else None) == (None if code else wanted)


@pytest.mark.parametrize(("kind", "now"), [(CommandKind.PAUSE, S.PAUSED), (CommandKind.RESUME, S.REPLICATING)])
def test_a_table_that_has_the_state_already_is_left_alone(kind: CommandKind, now: TableState) -> None:
    (change,) = plan_state_changes(command(kind), [status(now)], "2026-01-02")
    assert (change.state, change.refusal) == (None, None)


@pytest.mark.parametrize(
    ("kind", "now", "state"),
    [
        (CommandKind.PAUSE, None, S.PAUSED),
        (CommandKind.PAUSE, S.BLOCKED, S.PAUSED),
        (CommandKind.RESUME, S.PAUSED, S.PENDING),
        (CommandKind.RESUME, S.BLOCKED, S.PENDING),
    ],
)
def test_a_first_copy_is_paused_and_resumed(kind: CommandKind, now: TableState | None, state: TableState) -> None:
    first_copy = State(now, "2026-01-01") if now else None
    (change,) = plan_state_changes(
        command(kind), [TableStatus("public.a", "a", None, first_copy=first_copy)], "2026-01-02"
    )
    assert change.state is not None and (change.state.name, change.state.command) == (state, "c1")
    already = TableStatus("public.a", "a", None, first_copy=State(S.PAUSED, "2026-01-01"))
    (again,) = plan_state_changes(command(CommandKind.PAUSE), [already], "2026-01-02")
    assert (again.state, again.refusal) == (None, None)


def test_a_table_of_others_one_without_copy_and_an_unknown_one_are_refused_by_name() -> None:
    others, pending = TableStatus("public.a", "a", None, exists=True), TableStatus("public.b", "b", None)
    found = plan_state_changes(command(CommandKind.PAUSE, "public.a", "public.z"), [others, pending], "2026-01-02")
    found += plan_state_changes(command(CommandKind.RESUME, "public.b"), [others, pending], "2026-01-02")
    assert [(change.table, change.refusal.code) for change in found if change.refusal] == [
        ("public.a", "CMD003"),
        ("public.z", "CMD005"),
        ("public.b", "CMD003"),
    ]

"""Pauses, resumes and rewinds that wait for a run: each is carried out, in the order they were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.control.immediate_commands import carry_out
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.small_world import World

PAUSE, RESUME, REWIND = CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.run("r1").problems == ()
    return world


def states(world: World) -> dict[str, TableState]:
    return {table: world.control(table).state.name for table in world.tables}


def test_all_that_wait_are_carried_out_by_one_run_in_their_order(world: World) -> None:
    world.source.change(*world.tables)
    world.run("r2")
    asked = [
        world.ask(PAUSE, "public.a", reason="first"),
        world.ask(PAUSE, "public.b"),
        world.ask(RESUME),
        world.ask(REWIND, "public.a", to="1"),
        world.ask(PAUSE, "public.b", reason="last"),
    ]
    assert world.run("r3").problems == ()
    ended = [world.state.command(one.id) for one in asked]
    assert [one.outcome for one in ended if one] == [
        "pause: public.a",
        "pause: public.b",
        "resume: public.a, public.b",
        "rewind: public.a",
        "pause: public.b",
    ]
    assert {one.status for one in ended if one} == {CommandStatus.DONE}
    assert states(world) == {"public.a": TableState.REPLICATING, "public.b": TableState.PAUSED}
    assert world.control("public.b").state.reason == "last"
    assert world.control("public.a").window == 2, "taken back and brought forward again"


def test_a_request_waits_for_a_table_that_does_not_answer_and_later_ones_about_it_wait_behind_it(world: World) -> None:
    store = world.replicator.target.store  # type: ignore[attr-defined]
    store.write("public_b/locked", b"")
    first, second = world.ask(PAUSE), world.ask(RESUME, "public.b")
    world.run("r2")
    assert [one.id for one in world.state.pending("shop")] == [first.id, second.id]
    store.delete("public_b/locked")
    third = world.ask(RESUME, "public.a")
    world.run("r3")
    assert world.state.pending("shop") == ()
    assert {one.status for one in map(world.state.command, (first.id, second.id, third.id)) if one} == {
        CommandStatus.DONE
    }
    assert set(states(world).values()) == {TableState.REPLICATING}


def test_a_request_about_other_tables_does_not_wait(world: World) -> None:
    world.replicator.target.store.write("public_b/locked", b"")  # type: ignore[attr-defined]
    waiting, other = world.ask(PAUSE, "public.b"), world.ask(PAUSE, "public.a")
    world.run("r2")
    assert [one.id for one in world.state.pending("shop")] == [waiting.id]
    assert world.control("public.a").state.command == other.id


def test_what_another_process_has_carried_out_meanwhile_is_not_done_again(world: World) -> None:
    pause = world.ask(PAUSE, "public.a")
    replicator, targets = world.replicator, {table: table.replace(".", "_") for table in world.tables}
    assert carry_out(replicator, [pause], targets, {}, "ann")
    assert carry_out(replicator, [world.ask(RESUME, "public.a")], targets, {}, "ann")
    carry_out(replicator, [pause], targets, {}, "r2")
    assert world.control("public.a").state.name is TableState.REPLICATING

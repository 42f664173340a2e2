"""What a run removes at its end, and what it keeps for whom."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control import retention
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.serde import to_plain
from tests.provider.small_world import LakeOfFiles, World, schema
from tests.provider.stopping import Stop


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.run("r1").problems == ()
    return world


def test_windows_go_when_every_table_has_passed_them_and_quiet_tables_are_moved_over_them(world: World) -> None:
    quick = replace(world.definition.staging, retain=timedelta(0))
    world.definition = replace(world.definition, staging=quick)
    for number in range(2, 6):
        world.source.change("public.a")
        assert world.run(f"manual__{number}").problems == ()
    log = world.replicator.log
    assert (log.oldest(), log.sealed()) == (5, 5)
    assert world.control("public.b").window >= 4, "it had no change, its cursor was moved without data"
    (world.folder / "state.db").unlink()
    rebuild_index(world.replicator, "ann")
    world.source.change("public.a", "public.b")
    assert world.run("manual__6").problems == (), "what was cleaned is not missed, even without the index"


def test_windows_are_kept_for_as_long_as_the_definition_says(world: World) -> None:
    for number in range(2, 5):
        world.source.change(*world.tables)
        world.run(f"manual__{number}")
    assert (world.replicator.log.oldest(), world.replicator.log.sealed()) == (1, 4)


def test_a_paused_table_keeps_its_windows(world: World) -> None:
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    world.ask(CommandKind.PAUSE, "public.a")
    for number in range(2, 5):
        world.source.change("public.a")
        world.run(f"manual__{number}")
    assert world.replicator.log.oldest() <= 2
    world.ask(CommandKind.RESUME)
    assert world.run("manual__5").problems == ()
    assert world.control("public.a").window == 4


def test_old_runs_and_their_batches_are_removed(world: World) -> None:
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    store = world.replicator.log.store
    store.write("batches/public.a/stage-1/batch.json", b"{}")
    for number in range(2, 5):
        world.source.change("public.a")
        world.run(f"manual__{number}")
    assert "manual__4" in store.names("steps")
    assert "manual__2" not in store.names("steps")
    assert store.names("batches/public.a") == []


def test_a_run_that_died_before_it_had_decided_does_not_keep_the_runs_after_it(world: World) -> None:
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    store = world.replicator.log.store
    store.write("steps/manual__1/plan.json", b"{}")
    for number in range(2, 4):
        world.source.change("public.a")
        world.run(f"manual__{number}")
    assert [name for name in store.names("steps") if name.startswith("manual__")] == ["manual__3"]


def test_control_records_that_nobody_asks_for_go_and_no_fence_is_given_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target keeps no version but the newest."""
    monkeypatch.setattr(retention, "CONTROLS_EVERY_WINDOWS", 1)
    monkeypatch.setattr(LakeOfFiles, "oldest_token", lambda self, table, target: self.state(table, target).token)
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    store, log = world.replicator.log.store, world.replicator.log
    for number in range(2, 5):
        world.source.change("public.a")
        world.ask(CommandKind.PAUSE, "public.b")
        world.ask(CommandKind.RESUME, "public.b")
        assert world.run(f"manual__{number}").problems == ()
    for table in world.tables:
        assert len(store.names(f"control/{table}")) == 1
        assert log.control(table, world.control(table).token) == world.control(table)
    fences = {table: log.highest_fence(table) for table in world.tables}
    assert fences["public.b"] > 3
    (world.folder / "state.db").unlink()
    assert {row.table for row in rebuild_index(world.replicator, "ann")} == set(world.tables)
    world.ask(CommandKind.RESYNC)
    assert world.run("manual__5").problems == ()
    assert all(world.control(table).fence > fence for table, fence in fences.items())


def test_what_stops_the_cleaning_decides_nothing_of_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet table is moved by somebody just before its cursor would be; another table is blocked."""
    for number in range(2, 4):
        world.source.change("public.a")
        world.run(f"manual__{number}")
    world.source.write(tables=[to_plain(schema(table)) for table in (*world.tables, "public.c")])
    world.commit("public_c", replace(world.control("public.a"), table="public.x", replicator="other"))
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    world.source.change("public.a")
    world.spark(world.open("manual__4"))
    stop = Stop("state.after", world.folder, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(world.close, "manual__4")
        stop.wait_until_reached()
        replicator = world.replicator
        held = replicator.target.state("public.b", "public_b")
        commit_fence(replicator, "public.b", "public_b", held, "somebody")
        stop.go()
        problems = closing.result().problems
    assert [(problem.code, problem.where) for problem in problems] == [("RUN003", "public.c")]
    assert [line for line in world.told if "FEN003" in line and "the next run" in line]
    assert replicator.log.oldest() == 1, "the windows are kept until the table was moved over them"
    assert "manual__2" not in replicator.log.store.names("steps"), "the rest is cleaned up all the same"
    world.source.change("public.a")
    world.run("manual__5")
    assert replicator.log.oldest() > 1

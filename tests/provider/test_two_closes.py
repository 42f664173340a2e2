"""Two runs that end at once: one followed the stream, one copied a table."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.state.store import StateStore
from tests.provider.small_world import World, schema

STREAM, COPY = "manual__5", "manual__4"
EVERY = 4
"""Every how many accesses to a store the other run ends between them."""

TABLES = ("public.a", "public.b", "public.c")


def opened(folder: Path) -> World:
    world = World(folder)
    world.state = StateStore(f"sqlite:///{folder}/state.db")
    world.definition = replace(world.definition, staging=replace(world.definition.staging, retain=timedelta(0)))
    return world


def before_the_ends(folder: Path) -> World:
    """Three windows are old. ``public.b`` had no change since the first."""
    world = World(folder)
    world.run("r1")
    for number in (2, 3):
        world.source.change("public.a")
        world.run(f"manual__{number}")
    world.source.write(tables=[to_plain(schema(table)) for table in TABLES])
    world.spark(world.open(COPY))
    world.source.change("public.a", "public.c")
    world.spark(world.open(STREAM))
    world.replicator.state.release("shop", Lane.STREAM, STREAM)
    return world


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ready")
    before_the_ends(folder)
    return folder


def require_all_well(world: World, *closings: CloseResult) -> None:
    assert [problem for closing in closings for problem in closing.problems] == []
    assert [line for line in world.told if "failed" in line] == []
    world.source.change("public.c")
    assert world.run("manual__6").problems == ()
    assert world.replicator.log.oldest() > 1, "what the two did not clean up, the next run does"
    rows = world.replicator.state.tables("shop")
    assert {table: row.state for table, row in rows.items()} == dict.fromkeys(TABLES, TableState.REPLICATING)
    assert rows["public.a"].changes == {"update": 3}, "no count is lost"


def end(world: World, run_id: str, closings: list[CloseResult]) -> None:
    closings.append(world.close(run_id))


class Passing:
    """Calls ``act`` within the ``nth`` access to a store, and counts them."""

    def __init__(self, nth: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("read", "exists", "names", "delete"):
            monkeypatch.setattr(LocalStore, name, self._around(getattr(LocalStore, name), nth, act))

    def _around(self, method: Callable[..., Any], nth: int, act: Callable[[], None]) -> Callable[..., Any]:
        def passing(store: LocalStore, path: str) -> Any:
            self.count += 1
            if self.count == nth:
                act()
            return method(store, path)

        return passing


@pytest.mark.parametrize(("first", "second"), [(STREAM, COPY), (COPY, STREAM)])
def test_a_run_may_end_at_any_moment_of_the_end_of_another(
    ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    at, within = -1, True
    while within:
        at += EVERY
        folder = Path(shutil.copytree(ready, tmp_path / str(at)))
        world, closings = opened(folder), list[CloseResult]()
        with monkeypatch.context() as patch:
            passing = Passing(at, partial(end, world, second, closings), patch)
            closings.append(world.close(first))
        within = passing.count >= at
        if not within:
            end(world, second, closings)
        require_all_well(world, *closings)
    assert at > 20


def test_a_run_removes_nothing_of_the_log_while_another_follows_the_stream(ready: Path, tmp_path: Path) -> None:
    """That one may be reading the windows a quiet table has not been moved over yet."""
    world = opened(Path(shutil.copytree(ready, tmp_path / "copy")))
    assert world.replicator.state.acquire("shop", Lane.STREAM, STREAM, LEASE_S)
    before = world.control("public.b")
    assert world.close(COPY).problems == ()
    assert world.replicator.log.oldest() == 1
    assert world.control("public.b") == before
    require_all_well(world, world.close(STREAM))


def _closed(told: tuple[Path, str, float]) -> tuple[CloseResult, list[str]]:
    folder, run_id, start = told
    world = opened(folder)
    time.sleep(max(0, start - time.time()))
    return world.close(run_id), world.told


def test_two_processes_end_their_runs_at_once(ready: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number in range(3):
            folder = Path(shutil.copytree(ready, tmp_path / str(number)))
            start = time.time() + 0.3
            done = list(pool.map(_closed, [(folder, run_id, start) for run_id in (STREAM, COPY)]))
            world = opened(folder)
            world.told += [line for _, told in done for line in told]
            require_all_well(world, *(closing for closing, _ in done))

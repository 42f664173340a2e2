"""Two runs that end concurrently: one applied the stream, one copied a table."""

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
from tests.provider.run_harness import RunHarness, schema

STREAM, COPY = "manual__5", "manual__4"
EVERY = 4
"""The step of the access to a store at which the other run ends."""

TABLES = ("public.a", "public.b", "public.c")


def opened(folder: Path) -> RunHarness:
    harness = RunHarness(folder)
    harness.state = StateStore(f"sqlite:///{folder}/state.db")
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, retain=timedelta(0)))
    return harness


def before_the_ends(folder: Path) -> RunHarness:
    """Three windows are old. ``public.b`` has no change since the first."""
    harness = RunHarness(folder)
    harness.run("r1")
    for number in (2, 3):
        harness.source.change("public.a")
        harness.run(f"manual__{number}")
    harness.source.write(tables=[to_plain(schema(table)) for table in TABLES])
    harness.spark(harness.open(COPY))
    harness.source.change("public.a", "public.c")
    harness.spark(harness.open(STREAM))
    harness.replicator.state.release("shop", Lane.STREAM, STREAM)
    return harness


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ready")
    before_the_ends(folder)
    return folder


def require_all_well(harness: RunHarness, *closings: CloseResult) -> None:
    assert [problem for closing in closings for problem in closing.problems] == []
    assert [line for line in harness.log_lines if "failed" in line] == []
    harness.source.change("public.c")
    assert harness.run("manual__6").problems == ()
    assert harness.replicator.log.oldest() > 1, "the next run removes what these two did not"
    rows = harness.replicator.state.tables("shop")
    assert {table: row.state for table, row in rows.items()} == dict.fromkeys(TABLES, TableState.REPLICATING)
    assert rows["public.a"].changes == {"updated": 3}, "no count is lost"


def end(harness: RunHarness, run_id: str, closings: list[CloseResult]) -> None:
    closings.append(harness.close(run_id))


class Passing:
    """Calls ``act`` at the ``nth`` access to a store, and counts the accesses."""

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
        harness, closings = opened(folder), list[CloseResult]()
        with monkeypatch.context() as patch:
            passing = Passing(at, partial(end, harness, second, closings), patch)
            closings.append(harness.close(first))
        within = passing.count >= at
        if not within:
            end(harness, second, closings)
        require_all_well(harness, *closings)
    assert at > 20


def test_a_run_removes_no_window_while_another_has_the_lease_of_the_stream(ready: Path, tmp_path: Path) -> None:
    """The other run may read windows over which the cursor of an idle table is not moved yet."""
    harness = opened(Path(shutil.copytree(ready, tmp_path / "copy")))
    assert harness.replicator.state.acquire("shop", Lane.STREAM, STREAM, LEASE_S)
    before = harness.control("public.b")
    assert harness.close(COPY).problems == ()
    assert harness.replicator.log.oldest() == 1
    assert harness.control("public.b") == before
    require_all_well(harness, harness.close(STREAM))


def _closed(arguments: tuple[Path, str, float]) -> tuple[CloseResult, list[str]]:
    folder, run_id, start = arguments
    harness = opened(folder)
    time.sleep(max(0, start - time.time()))
    return harness.close(run_id), harness.log_lines


def test_two_processes_end_their_runs_concurrently(ready: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number in range(3):
            folder = Path(shutil.copytree(ready, tmp_path / str(number)))
            start = time.time() + 0.3
            done = list(pool.map(_closed, [(folder, run_id, start) for run_id in (STREAM, COPY)]))
            harness = opened(folder)
            harness.log_lines += [line for _, lines in done for line in lines]
            require_all_well(harness, *(closing for closing, _ in done))

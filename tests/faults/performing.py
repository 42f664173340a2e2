"""One act from the beginning to the verdict, and worlds in which many follow each other."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults import attempts
from tests.faults.acts import Act
from tests.faults.checker.invariants import Finding
from tests.faults.matrix import Case
from tests.faults.road import Road
from tests.faults.scenes import SCENES
from tests.faults.strike import Strike
from tests.faults.world import World, new_name

ACTS_PER_WORLD = 10
QUIET_RUNS = 5


@dataclass(frozen=True)
class Outcome:
    """``found``: what was wrong in the whole act; empty is good. ``ended``: for each case that was done, how a woken
    attempt ended. A case that the act did not come to stands in neither."""

    seconds: float
    found: tuple[str, ...]
    ended: tuple[tuple[Case, str], ...]


class Theatre:
    """One world, made anew after so many acts, after a failure, for another target, and where an act needs a new one.
    Spark's session must be there."""

    def __init__(self, folder: Path, server: EmbeddedPostgres, mariadb: EmbeddedMariaDB | None, seed: int) -> None:
        self.folder = folder
        self.server = server
        self.mariadb = mariadb
        self.seed = seed
        self.world: World | None = None
        self.unsettled: list[str] = []
        self._acts = 0
        self._stack = contextlib.ExitStack()
        self._living = contextlib.ExitStack()

    def __enter__(self) -> Theatre:
        self._stack.enter_context(attempts.operating(lambda _: self._now().secrets))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._stack.close()

    def perform(self, act: Act) -> Outcome:
        started = time.monotonic()
        strikes: list[Strike] = []
        try:
            found = self._perform(act, strikes)
        # An act that ends in any error has failed, and the others go on.
        except Exception as error:
            found = [f"{type(error).__name__}: {error}", traceback.format_exc()]
        finally:
            for strike in strikes:
                strike.forget()
        if found:
            self._leave()
        done = tuple((strike.case, strike.ended) for strike in strikes if strike.done and not strike.missed)
        return Outcome(time.monotonic() - started, tuple(found), done)

    def _perform(self, act: Act, strikes: list[Strike]) -> list[str]:
        attempts.worker.set(attempts.HERE)
        attempts.hidden.clear()
        self._acts += 1
        world = self.world_for(act.target, act.scene == "first" or self._acts > ACTS_PER_WORLD, act.scene != "first")
        strikes += [Strike(case, task, world) for task, case in act.cases]
        found: list[str] = []

        def after(strike: Strike) -> None:
            found.extend(f"after {strike.case}: {one}" for one in world.judge.judge())

        def run(between: Callable[[str], object]) -> Road:
            of_runs = [] if SCENES[act.scene].series else strikes
            return Road(world, of_runs, after, between).go()

        world.writer.turn_to_two()
        last = SCENES[act.scene].play(world, strikes, run)
        said = [] if last is not None and last.green else quiet(world)
        found += map(str, woken(world, strikes))
        found += map(str, world.judge.judge())
        if len(act.cases) == 1:
            found += settled(world)
        return [*found, *said]

    def close(self) -> None:
        """Every table of the world that is left must come to rest; what does not, stands in ``unsettled``."""
        if self.world is not None:
            self.unsettled += settled(self.world)
        self._leave()

    def _leave(self) -> None:
        self.world = None
        self._living.close()

    def _now(self) -> World:
        assert self.world is not None
        return self.world

    def world_for(self, target: str, fresh: bool = False, begun: bool = True) -> World:
        """One that lives, on this target. ``fresh``: a new one. ``begun``: its tables are copied."""
        if self.world is not None and (fresh or self.world.kind != target):
            self.close()
        if self.world is None:
            self._acts = 1
            name = new_name()
            folder = self.folder / name
            folder.mkdir()
            self._living = contextlib.ExitStack()
            world = World(name, folder, target, self.server, self.mariadb, self.seed)
            self._living.enter_context(world.living())
            self.world = world
            if begun and (said := quiet(world)):
                raise AssertionError(f"the world did not begin: {said}")
        return self.world


def quiet(world: World) -> list[str]:
    """Runs in which nothing goes wrong, until one has nothing left to make good. What the last one complained of."""
    for _ in range(QUIET_RUNS):
        road = Road(world).go()
        if road.green:
            return []
    return [f"no run is green: {road.states} {road.said}"]


def settled(world: World) -> list[str]:
    """What is wrong when nothing goes on any more. A first copy leaves its log to the next run, and what was woken may
    have written to the index what it knew before: a run makes that good."""
    said = quiet(world) if world.judge.rest() else []
    return [*map(str, (*world.judge.judge(), *world.judge.rest())), *said]


def woken(world: World, strikes: list[Strike]) -> Iterator[Finding]:
    """Others have done the work by now: an attempt that wakes commits nothing."""
    if not any(strike.stopped for strike in strikes):
        return
    before = {table: {one.number for one in found} for table, found in world.judge.look().items()}
    for strike in strikes:
        strike.wake()
    for table, found in world.judge.look().items():
        for one in found:
            if one.number not in before.get(table, ()) and one.record is not None and not _cleans(one.record, strikes):
                by = f"{one.record['attempt']}: {', '.join(strike.ended for strike in strikes)}"
                yield Finding("a woken attempt commits nothing", table, by)


def _cleans(record: Mapping[str, Any], strikes: Iterable[Strike]) -> bool:
    """Whoever cleans up moves cursors over windows that held nothing for their tables. That is as right later."""
    return record["attempt"] in [strike.run_id for strike in strikes if strike.case.step == "clean"]

"""How each step of the matrix is reached. One run passes many steps, so many cases may share it.

A scene brings the world to where its cases can be done, has them done, and gives the last run back, if there is one.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from airflow_cdc_provider.core.errors import CdcError, Fenced
from airflow_cdc_provider.staging.open_store import open_log
from tests.faults.carried import strike_quarantined, strike_unordered
from tests.faults.road import Road
from tests.faults.strike import Died, Strike
from tests.faults.worker import Told, carry
from tests.faults.world import KEPT, World
from tests.faults.writer import ACCOUNTS, EVENTS

UPKEEP_EVERY = 10
_keys = itertools.count(1)

Run = Callable[[Callable[[str], object]], Road]
"""A run of the DAG with the strikes of this scene; what is given is called before each task."""


@dataclass(frozen=True)
class Scene:
    """``tasks``: step of the matrix → the task it is struck in. ``shared``: steps of the stream may be struck, too.
    ``series``: so many cases one after the other, instead of one per task."""

    play: Callable[[World, Sequence[Strike], Run], Road | None]
    tasks: Mapping[str, str]
    shared: bool = True
    series: int = 0


STREAM = {
    "open": "open_window",
    "extract": "extract",
    "stage": "stage",
    "merge": "merge",
    "submit": "merge",
    "holes": "find_holes",
    "close": "close_window",
}


def stream(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    world.writer.step(3)
    return run(lambda _: None)


def plain(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """A batch of whole rows, of a table that takes changes."""
    world.writer.shapes = [ACCOUNTS]
    return stream(world, strikes, run)


def grown(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """A table gets a column more."""
    world.execute(f"alter table {ACCOUNTS.table} add column more_{next(_keys)} text")
    return stream(world, strikes, run)


def reopened(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """The slot is lost: a new one, and a new copy of every table. What is in the log is applied before that."""
    Road(world).go()
    with psycopg.connect(world.server.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [f"cdc_{world.name}"])
    return stream(world, strikes, run)


COMES = {"later": "open_window", "snapshot": "snapshot"}
AGAIN = {
    "approve": "open_window",
    "pause_stream": "reconcile.pause_stream",
    "resync": "reconcile.resync",
    "replay": "reconcile.replay",
    "resume_stream": "reconcile.resume_stream",
}


def copied(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """A table comes to the others, one of them is copied again. Where the replay is struck, another run has landed a
    window since that copy: else there is nothing to replay."""

    def meanwhile(task: str) -> None:
        if task == "reconcile.replay" and any(strike.task == task for strike in strikes):
            world.writer.step(20)
            Road(world).go()

    steps = {strike.case.step for strike in strikes}
    if steps & COMES.keys():
        world.add_table()
    if steps & AGAIN.keys():
        world.writer.shapes = [*{*world.writer.shapes, ACCOUNTS}]
        asked(world, "resync", ACCOUNTS.table, approve_deletes=True)
    world.writer.step(3)
    return run(meanwhile)


def proved(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    asked(world, "verify", ACCOUNTS.table)
    return stream(world, strikes, run)


def cleaned(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """One table has been quiet for some windows, and none is kept longer than needed."""
    shapes = world.writer.shapes
    world.writer.shapes = [EVENTS]
    try:
        for _ in range(2):
            world.writer.step(2)
            Road(world).go()
        world.keep(timedelta(0))
        return stream(world, strikes, run)
    finally:
        world.keep(KEPT)
        world.writer.shapes = shapes


def looked_after(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """Each tenth window is followed by upkeep: the ones before it are landed only."""
    log = open_log(world.definition, world.secrets.staging)
    while log.sealed() % UPKEEP_EVERY != UPKEEP_EVERY - 1:
        world.writer.step(1)
        Road(world, leave_out=["stage"]).go()
    return stream(world, strikes, run)


def ordered(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """Pauses and resumes, one after the other. The same request again changes nothing; a run passes the paused by."""
    for strike in strikes:
        if strike.task == "resume":
            asked(world, "pause", EVENTS.table)
        told: Told = {"tables": [EVENTS.table], "key": f"{strike.task}-{next(_keys)}"}
        struck(world, strike, told)
        done_twice(world, strike.task, told)
        if strike.task == "pause" and strike is strikes[-1]:
            world.writer.step(3)
            Road(world).go()
            assert world.judge.look()[EVENTS.table][-1].state == "paused"
        if strike.task == "pause":
            asked(world, "resume", EVENTS.table)
    return stream(world, (), run)


def rewound(world: World, strikes: Sequence[Strike], run: Run) -> Road:
    """Further and further back."""
    for _ in strikes:
        world.writer.step(3)
        Road(world).go()
    sealed = open_log(world.definition, world.secrets.staging).sealed()
    for number, strike in enumerate(strikes, 1):
        to = {"to": str(sealed - number)}
        told: Told = {"tables": [EVENTS.table], "key": f"rewind-{next(_keys)}", "arguments": to}
        struck(world, strike, told)
        done_twice(world, "rewind", told)
    return stream(world, (), run)


def done_twice(world: World, task: str, told: Told) -> None:
    done(world, task, told)
    before = commits(world)
    done(world, task, told)
    assert commits(world) == before, f"{task} again, with the same key, is a commit more"


def rebuilt(world: World, strikes: Sequence[Strike], run: Run) -> None:
    """The state store is lost."""
    for path in world.folder.glob("state.db*"):
        path.unlink()
    struck(world, strikes[0], {})
    done(world, "rebuild", {})


def unordered(world: World, strikes: Sequence[Strike], run: Run) -> None:
    strike_unordered(world.folder, strikes)


def quarantined(world: World, strikes: Sequence[Strike], run: Run) -> None:
    strike_quarantined(world.folder, strikes)


def asked(world: World, kind: str, table: str, **arguments: object) -> None:
    done(world, kind, {"tables": [table], "arguments": arguments, "key": f"{kind}-{next(_keys)}"})


def struck(world: World, strike: Strike, told: Told) -> None:
    with contextlib.suppress(CdcError, Died, OSError, psycopg.Error, strike.loss):  # it was struck: the next try tells
        strike.hit("", told, lambda: carry(world.replicator(), strike.task, "", told))


def done(world: World, task: str, told: Told) -> None:
    """An operator who is refused because something moved tries again."""
    for _ in range(3):
        with contextlib.suppress(Fenced):
            carry(world.replicator(), task, "", told)
            return


def commits(world: World) -> dict[str, int]:
    return {table: len([one for one in found if one.record]) for table, found in world.judge.look().items()}


SCENES = {
    "stream": Scene(stream, {}),
    "first": Scene(stream, {"first": "open_window"}, shared=False),
    "copies": Scene(copied, COMES | AGAIN),
    "plain": Scene(plain, {"plain": "merge"}, shared=False),
    "grown": Scene(grown, {"grown": "extract"}),
    "reopen": Scene(reopened, {"reopen": "open_window"}, shared=False),
    "proved": Scene(proved, {"verify": "verify"}, shared=False),
    "cleaned": Scene(cleaned, {"clean": "close_window"}),
    "looked after": Scene(looked_after, {"upkeep": "merge"}),
    "orders": Scene(ordered, {"pause": "pause", "resume": "resume"}, shared=False, series=5),
    "rewind": Scene(rewound, {"rewind": "rewind"}, shared=False, series=4),
    "unordered": Scene(unordered, {"unordered": "stage"}, shared=False),
    "quarantined": Scene(quarantined, {"quarantined": "stage"}, shared=False),
    "rebuilt": Scene(rebuilt, {"rebuild": "rebuild"}, shared=False),
}

"""Every place that has a failpoint: what it stands for, in which steps it is passed, and what is done to it there.

The names here are those in the code, checked both ways. A case is a place in a step, an action and a target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KILL, KILL_JVM, LATE_KILL, FREEZE = "kill9", "kill9:jvm", "kill9:jvm later", "freeze"
NO_EFFECT, EFFECT, FULL = "lie_before", "lie_after", "enospc"
WHAT = {
    KILL: "SIGKILL to the Python process; its JVM is left to notice",
    KILL_JVM: "SIGKILL to the JVM; its Python is left to notice",
    LATE_KILL: "SIGKILL to the JVM a moment later, in the midst of what follows",
    FREEZE: "both processes stopped; woken after another attempt has done the work",
    NO_EFFECT: "the answer is lost and nothing was done",
    EFFECT: "the answer is lost and the effect is there",
    FULL: "the disk is full",
}
DEATHS = (KILL, KILL_JVM, FREEZE)
"""What is done to a Spark driver at any place. A worker's task has no JVM."""

ALL = ("delta", "postgres", "iceberg", "mysql")
WHOLE = ("delta", "postgres")
LAKES, DATABASES = ("delta", "iceberg"), ("postgres", "mysql")
MAIN = ("seal.", "merge.", "publish.", "commit.")
"""Places that are struck on every target, in the steps that land a window and merge it; the others are struck on Delta
and PostgreSQL."""

BY_HAND = ("unordered", "quarantined")
"""Steps of tables that no writer writes to."""
DRIVERS = ("snapshot", "extract", "grown", "stage", "merge", "resync", "replay", "verify", "upkeep", "plain", *BY_HAND)
"""Steps that run as a Spark driver. The others are a worker's own Python."""

STAGING = "StagingUnavailable"
SOURCE = "psycopg.OperationalError"
SPARK = "pyspark.errors.PySparkException"
SERVER = {"postgres": "psycopg.OperationalError", "mysql": "pymysql.err.OperationalError"}
LAKE = {"delta": "deltalake.exceptions.DeltaError", "iceberg": "requests.exceptions.ConnectionError"}


@dataclass(frozen=True, eq=False)
class Place:
    """``steps``: where the place is struck; elsewhere it is passed, too. ``nth`` passage. ``only``: what is done
    there, where that is not what is done elsewhere in such a step. ``lost``: the error by which
    a library or a storage tells there that an answer was lost, by target where they differ."""

    name: str
    what: str
    steps: tuple[str, ...]
    targets: tuple[str, ...] = ALL
    lost: str | dict[str, str] = ""
    more: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    nth: int = 1


@dataclass(frozen=True)
class Case:
    place: Place
    step: str
    action: str
    target: str

    def __str__(self) -> str:
        return f"{self.place.name} in {self.step}, {self.action}, {self.target}"


PLACES = (
    # A worker's own tasks
    Place("open.after_lanes", "open_window holds its lanes and has decided nothing", ("open",)),
    Place("stream.dropped", "an invalid slot is dropped, the new one is not made", ("reopen",)),
    Place("stream.before", "before the slot is made", ("first", "reopen"), lost=SOURCE),
    Place("stream.after", "the slot is made, its place is not sealed", ("first", "reopen"), lost=SOURCE),
    Place("claim.after", "a table is claimed for copying, the others are not", ("later",)),
    Place("plan.before", "the run is decided and nobody can read it", ("open",), more=(FULL,)),
    Place("plan.after", "the plan is written, the decision is not", ("open",)),
    Place("holes.after", "find_holes has written what it found", ("holes",)),
    Place("resync.fenced", "a table is resyncing in the target, the index does not know", ("pause_stream",)),
    Place("resume.before", "the new copy is in, the table is still resyncing", ("resume_stream",)),
    Place("resume.after", "the table takes changes again, its claim is not given back", ("resume_stream",)),
    Place("decision.after", "an operator's yes is written, the run is not decided", ("approve",)),
    Place("request.fenced", "the fences of a request are in, the request is not ended", ("pause", "resume")),
    Place("rewind.after_fence", "a rewind is announced, the data stand", ("rewind",), LAKES),
    Place("restore.before", "before the data go back", ("rewind",), LAKES, LAKE),
    Place("restore.after", "the data are back, nobody knows", ("rewind",), LAKES, LAKE),
    Place("rewind.after_cut", "the data are back, their cursor is not written", ("rewind",), LAKES),
    Place("fence.before", "before a fence in the lake", ("pause", "pause_stream"), LAKES, LAKE),
    Place("fence.after", "a fence in the lake, nobody knows", ("pause", "pause_stream"), LAKES, LAKE),
    Place("rebuild.before", "a lost state store is read from the targets, not yet written", ("rebuild",)),
    Place("state.before", "the targets are read, the index is not written", ("close",)),
    Place("state.after", "the index is written, nothing acknowledged", ("close",)),
    Place("ack.before", "before the source may forget", ("close",), lost=SOURCE),
    Place("ack.after", "the source may forget, nobody knows", ("close",), lost=SOURCE),
    Place("clean.moved", "a quiet table's cursor is moved, its windows stand", ("clean",)),
    Place("clean.manifest", "a window's manifest is gone, its files are not", ("clean",)),
    Place("clean.batch", "a batch is removed, others are not", ("close",)),
    Place("cut.before", "before the cut is published", ("close",)),
    Place("cut.after", "the cut is published, the run is not closed", ("close",)),
    Place("submit.claimed", "an attempt has its folder, no job", ("submit",)),
    Place("submit.opened", "an attempt is recorded, no job is submitted", ("submit",)),
    # Any step that writes files of the log
    Place("store.write", "in the midst of a file of staging", ("open", "extract", "stage", "merge"), only=(FULL,)),
    Place(
        "seal.before",
        "the files of a window are whole, nobody names them",
        ("extract", "first"),
        lost=STAGING,
    ),
    Place("seal.after", "a window is sealed, its attempt does not know", ("extract", "first"), lost=STAGING),
    Place("schema.after", "a new schema is written, its window is not sealed", ("grown",)),
    Place("control.before", "before a commit is named in the log", ("merge", "pause"), lost=STAGING),
    Place("control.after", "a commit is named in the log, not made", ("merge", "pause"), lost=STAGING),
    # Spark drivers
    Place("extract.write", "in the midst of a window's file", ("extract",), more=(FULL,), nth=2),
    Place("extract.after_first_file", "one file of a window is whole", ("extract",)),
    Place("stage.after_rows", "the rows of a batch are written", ("stage",)),
    Place("carry.after", "the carry-over is written, no batch names it", ("unordered",), ("delta",)),
    Place("quarantine.after_write", "bad records are kept, no batch counts them", ("quarantined",), ("delta",)),
    Place("stage.after_batch", "a batch is whole, its result is not told", ("stage",)),
    Place("merge.before_submit", "rows wait in the database for the commit", ("merge",), DATABASES),
    Place(
        "merge.before_commit",
        "before data and cursor change",
        ("merge", "replay"),
        lost={"delta": SPARK},
        more=(LATE_KILL,),
    ),
    Place(
        "merge.after_commit", "data and cursor have changed, nobody knows", ("merge", "replay"), lost={"delta": SPARK}
    ),
    Place(
        "commit.unnamed",
        "Spark's commit is written, and not yet linked to its version",
        ("merge", "resync"),
        ("delta",),
        only=(KILL_JVM, FREEZE),
    ),
    Place("publish.before", "rows wait on a branch to become the table", ("merge", "resync"), ("iceberg",), LAKE),
    Place("publish.after", "the branch is the table, nobody knows", ("merge", "resync"), ("iceberg",), LAKE),
    Place("commit.before", "all is done in the transaction, before its commit", ("merge", "pause"), DATABASES, SERVER),
    Place("commit.after", "the transaction is committed, nobody knows", ("merge", "pause"), DATABASES, SERVER),
    Place("copy.anchored", "the anchor of a copy is set", ("snapshot", "resync")),
    Place("target.write", "in the midst of a file of the lake", ("snapshot", "plain"), ("delta",), more=(FULL,)),
    Place(
        "copy.before_commit",
        "a copy is named, its rows are read or can be",
        ("snapshot", "resync"),
        more=(LATE_KILL,),
    ),
    Place("overwrite.before", "before a copy stands in the lake", ("snapshot", "resync"), ("delta",), SPARK),
    Place("overwrite.after", "a copy stands in the lake, nobody knows", ("snapshot", "resync"), ("delta",), SPARK),
    Place("copy.before_swap", "a copy is loaded beside the table", ("snapshot", "resync"), DATABASES, SERVER),
    Place("copy.in_swap", "the copy has the table's name in an open transaction", ("resync",), DATABASES, SERVER),
    Place("copy.after_swap", "the copy is in place, nobody knows", ("snapshot", "resync"), DATABASES, SERVER),
    Place("copy.after_commit", "a copy is committed, its result is not told", ("snapshot", "resync")),
    Place("verify.before_compare", "both ends are at one position, not compared", ("verify",)),
    Place("upkeep.before", "a batch is in, before the upkeep of its table", ("upkeep",)),
    Place("upkeep.after", "the upkeep of a table is done, its result is not told", ("upkeep",)),
    Place("result.before", "all effects of a step are there, its result is not written", ("extract", "merge")),
    Place("result.after", "the result of a step is written, its driver lives", ("stage", "merge")),
)


def cases() -> list[Case]:
    return [
        Case(place, step, action, target)
        for place in PLACES
        for step in place.steps
        for target in place.targets
        if target in WHOLE or (place.name.startswith(MAIN) and step in ("extract", "merge"))
        for action in actions(place, step, target)
    ]


def actions(place: Place, step: str, target: str) -> Iterator[str]:
    if place.only:
        yield from place.only
        return
    yield from (KILL, KILL_JVM) if step in BY_HAND else DEATHS if step in DRIVERS else (KILL, FREEZE)
    if loss(place, target):
        yield EFFECT if "after" in place.name else NO_EFFECT
    yield from (action for action in place.more if action is not LATE_KILL or step in DRIVERS)


def loss(place: Place, target: str) -> str:
    return place.lost if isinstance(place.lost, str) else place.lost.get(target, "")

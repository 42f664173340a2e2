"""The fault matrix: every failpoint with its meaning, the steps in which cases reach it, and the actions there.

The names are those in the code; a test compares both. A case is a failpoint in a step, an action and a target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KILL, KILL_JVM, LATE_KILL, FREEZE = "kill9", "kill9:jvm", "kill9:jvm delayed", "freeze"
LOST_REQUEST, LOST_ANSWER, DISK_FULL = "lost_request", "lost_answer", "enospc"
ACTION_TEXTS = {
    KILL: "SIGKILL to the Python process; its JVM detects that by itself",
    KILL_JVM: "SIGKILL to the JVM; its Python process detects that by itself",
    LATE_KILL: "SIGKILL to the JVM half a second later, during the next operations",
    FREEZE: "both processes stopped; continued after another attempt has finished the step",
    LOST_REQUEST: "the request is lost: an error without an effect",
    LOST_ANSWER: "the answer is lost: an error although the effect is there",
    DISK_FULL: "the disk is full",
}
DRIVER_ACTIONS = (KILL, KILL_JVM, FREEZE)
"""Actions on a Spark driver at any failpoint. A task in a worker has no JVM."""

ALL = ("delta", "postgres", "iceberg", "mysql", "bigquery", "redshift", "snowflake", "spanner")
ALL_STEPS = ("delta", "postgres")
ALTERED = ("postgres", "mysql", "iceberg")
"""Targets that follow a wider type in place as they are."""
LAKES, DATABASES = ("delta", "iceberg"), ("postgres", "mysql", "bigquery", "redshift", "snowflake", "spanner")
WAREHOUSES = ("bigquery", "redshift", "snowflake")
WITH_LOADS = (*WAREHOUSES, "spanner")
ON_EVERY_TARGET = ("seal.", "merge.", "publish.", "commit.", "load.", "alter.")
"""Failpoints with cases on every target, in the steps that land a window and merge it; the others have cases on Delta
and PostgreSQL."""
STEPS_ON_EVERY_TARGET = ("extract", "merge", "altered")
STEPS_ON_WAREHOUSES = (*STEPS_ON_EVERY_TARGET, "pause", "snapshot", "resync")
"""Warehouses load and lock, and so pause and copy, in their own way."""

ON_SPANNER, STEPS_ON_SPANNER = (*ON_EVERY_TARGET, "copy."), ("extract", "merge", "parts", "pause", "snapshot", "resync")
"""Spanner commits copies and large batches in its own way."""

COMBINED = {
    "delta and postgres": ("delta", "postgres"),
    "shards in delta": ("delta",),
    "shards in postgres": ("postgres",),
    "shards in iceberg": ("iceberg",),
    "shards in mysql": ("mysql",),
}
"""Several targets of one replicator, and several source tables in one target table, with the types of their targets."""

ON_TWO_TARGETS = ("claim.", "clean.", "copy.", "cut.", "merge.", "plan.", "result.", "resume.", "stage.", "state.")
STEPS_ON_TWO_TARGETS = ("open", "stage", "merge", "close", "clean", "later", "snapshot", "resync", "resume_stream")
ON_SHARDS = ("commit.", "copy.", "fence.", "merge.", "overwrite.", "publish.", "resume.", "schema.", "upkeep.")
STEPS_ON_SHARDS = ("grown", "merge", "spark", "snapshot", "pause_stream", "resync", "resume_stream", "upkeep")
"""The other failpoints and steps know nothing of the number of targets, or of other rows in a target table."""
SHARD_STEPS = ("merge", "resync")
"""On targets without cases in all steps."""

COPIES_IN_A_COMMIT = ("snapshot", "resync")
"""Steps in which a copy in a shared table of a database replaces its rows in one commit, instead of the table."""

SWAPS = ("copy.before_swap", "copy.in_swap", "copy.after_swap")
"""Failpoints with cases in all their steps on every warehouse."""

WITHOUT_WRITER = ("unordered", "quarantined")
"""Steps of tables without a writer."""
DRIVERS = (
    "snapshot",
    "extract",
    "grown",
    "altered",
    "stage",
    "merge",
    "resync",
    "replay",
    "verify",
    "repair",
    "upkeep",
    "plain",
    "spark",
    "parts",
    *WITHOUT_WRITER,
)
"""Steps that run as a Spark driver. The others run in the Python process of a worker."""

STAGING = "StagingUnavailable"
SOURCE = "psycopg.OperationalError"
SPARK = "pyspark.errors.PySparkException"
SERVER = {
    "postgres": "psycopg.OperationalError",
    "mysql": "pymysql.err.OperationalError",
    "bigquery": "requests.exceptions.ConnectionError",
    "redshift": "redshift_connector.error.InterfaceError",
    "snowflake": "snowflake.connector.errors.OperationalError",
    "spanner": "google.api_core.exceptions.ServiceUnavailable",
}
LAKE = {"delta": "deltalake.exceptions.DeltaError", "iceberg": "requests.exceptions.ConnectionError"}


@dataclass(frozen=True, eq=False)
class Failpoint:
    """``steps``: the steps of its cases; other steps reach it, too. ``nth``: the passage that fires. ``only_actions``:
    instead of the usual actions of such a step. ``lost``: the error with which a library or a storage reports a lost
    answer, by target where they differ."""

    name: str
    meaning: str
    steps: tuple[str, ...]
    targets: tuple[str, ...] = ALL
    lost: str | dict[str, str] = ""
    extra_actions: tuple[str, ...] = ()
    only_actions: tuple[str, ...] = ()
    nth: int = 1


@dataclass(frozen=True)
class Case:
    failpoint: Failpoint
    step: str
    action: str
    target: str

    def __str__(self) -> str:
        return f"{self.failpoint.name} in {self.step}, {self.action}, {self.target}"


FAILPOINTS = (
    # Tasks in a worker
    Failpoint("open.after_lanes", "open_window has its leases and has not decided", ("open",)),
    Failpoint("stream.dropped", "an invalid slot is dropped, the new one is not created", ("reopen",)),
    Failpoint("stream.before", "before the slot is created", ("first", "reopen"), lost=SOURCE),
    Failpoint("stream.after", "the slot is created, its position is not sealed", ("first", "reopen"), lost=SOURCE),
    Failpoint("claim.after", "a table is claimed for a copy, the others are not", ("later",)),
    Failpoint("plan.before", "the run is decided, its plan is not written", ("open",), extra_actions=(DISK_FULL,)),
    Failpoint("plan.after", "the plan is written, the decision is not", ("open",)),
    Failpoint("holes.after", "find_holes has written its holes", ("holes",)),
    Failpoint("drop.decided", "the drop of a copy is decided, the copy is not fenced", ("gone",)),
    Failpoint("drop.fenced", "the copy of a dropped table is fenced and still there", ("gone",)),
    Failpoint("drop.dropped", "a copy is dropped, what else it has in the target is not", ("gone",)),
    Failpoint("drop.released", "a copy is dropped with all that it has, the index does not say so", ("gone",)),
    Failpoint("resync.fenced", "a table is resyncing in the target, not in the index", ("pause_stream",)),
    Failpoint("resume.before", "the new copy is committed, the table is still resyncing", ("resume_stream",)),
    Failpoint("resume.after", "the table takes changes again, its claim is not released", ("resume_stream",)),
    Failpoint("decision.after", "the approval of an operator is written, the run is not decided", ("approve",)),
    Failpoint(
        "request.fenced", "the fences of a request are committed, the request is not finished", ("pause", "resume")
    ),
    Failpoint("request.shown", "the index shows the tables, the request is not finished", ("pause", "resume")),
    Failpoint("rewind.after_fence", "a rewind is recorded, the data are unchanged", ("rewind",), LAKES),
    Failpoint("restore.before", "before the data are restored", ("rewind",), LAKES, LAKE),
    Failpoint("restore.after", "the data are restored, the answer is not received", ("rewind",), LAKES, LAKE),
    Failpoint("rewind.after_cut", "the data are restored, their cursor is not written", ("rewind",), LAKES),
    Failpoint("fence.before", "before the commit of a fence in the lake", ("pause", "pause_stream"), LAKES, LAKE),
    Failpoint(
        "fence.after",
        "a fence is committed in the lake, the answer is not received",
        ("pause", "pause_stream"),
        LAKES,
        LAKE,
    ),
    Failpoint(
        "rebuild.before", "the content of a lost state store is read from the targets, not written", ("rebuild",)
    ),
    Failpoint("state.before", "the targets are read, the index is not written", ("close",)),
    Failpoint("state.after", "the index is written, nothing is acknowledged", ("close",)),
    Failpoint("ack.before", "before the acknowledgement to the source", ("close",), lost=SOURCE),
    Failpoint("ack.after", "the source has the acknowledgement, the answer is not received", ("close",), lost=SOURCE),
    Failpoint("clean.moved", "the cursor of an idle table is moved, its windows are not removed", ("clean",)),
    Failpoint("clean.manifest", "the manifest of a window is removed, its files are not", ("clean",)),
    Failpoint("clean.batch", "a batch is removed, others are not", ("close",)),
    Failpoint("cut.before", "before the cut is published", ("close",)),
    Failpoint("cut.after", "the cut is published, the run is not closed", ("close",)),
    Failpoint("submit.claimed", "an attempt has its folder, no job is submitted", ("submit",)),
    Failpoint("submit.opened", "an attempt is recorded, no job is submitted", ("submit",)),
    # Any step that writes files of the log
    Failpoint(
        "store.write",
        "during the write of a file in staging",
        ("open", "extract", "stage", "merge"),
        only_actions=(DISK_FULL,),
    ),
    Failpoint(
        "seal.before",
        "the files of a window are complete, no manifest names them",
        ("extract", "first"),
        lost=STAGING,
    ),
    Failpoint("seal.after", "a window is sealed, the answer is not received", ("extract", "first"), lost=STAGING),
    Failpoint("alter.before", "before a table is altered at a schema change", ("altered",), ALTERED),
    Failpoint("alter.after", "a table is altered, the changes after that are not applied", ("altered",), ALTERED),
    Failpoint("schema.after", "a new schema is written, its window is not sealed", ("grown",)),
    Failpoint("control.before", "before a commit is named in the log", ("merge", "pause"), lost=STAGING),
    Failpoint("control.after", "a commit is named in the log, not committed", ("merge", "pause"), lost=STAGING),
    # Spark drivers
    Failpoint(
        "extract.write", "during the write of a file of a window", ("extract",), extra_actions=(DISK_FULL,), nth=2
    ),
    Failpoint("extract.after_first_file", "one file of a window is complete", ("extract",)),
    Failpoint("stage.after_rows", "the rows of a batch are written", ("stage",)),
    Failpoint("carry.after", "the carry-over is written, no batch names it", ("unordered",), ("delta",)),
    Failpoint(
        "quarantine.after_write", "bad records are in quarantine, no batch counts them", ("quarantined",), ("delta",)
    ),
    Failpoint("stage.after_batch", "a batch is complete, its result is not reported", ("stage",)),
    Failpoint(
        "load.before_commit", "before rows are committed to a staging table", ("merge", "snapshot"), WITH_LOADS, SERVER
    ),
    Failpoint(
        "load.after_commit",
        "rows are committed to a staging table, or will be, the answer is not received",
        ("merge", "snapshot"),
        WITH_LOADS,
        SERVER,
    ),
    Failpoint("merge.before_submit", "rows are in the database, before the commit", ("merge",), DATABASES),
    Failpoint(
        "merge.before_commit",
        "before data and cursor change",
        ("merge", "spark", "replay"),
        lost={"delta": SPARK},
        extra_actions=(LATE_KILL,),
    ),
    Failpoint(
        "merge.after_commit",
        "data and cursor have changed, the answer is not received",
        ("merge", "spark", "replay"),
        lost={"delta": SPARK},
    ),
    Failpoint("merge.saved", "the rows of a batch are saved in parts, it has not begun", ("parts",), ("spanner",)),
    Failpoint("merge.begun", "a merge in parts is decided, none is applied", ("parts",), ("spanner",)),
    Failpoint(
        "merge.after_part",
        "a part of a batch is applied, others are not",
        ("parts",),
        ("spanner",),
        extra_actions=(LATE_KILL,),
    ),
    Failpoint("merge.before_end", "all parts are applied, the cursor has not moved", ("parts",), ("spanner",)),
    Failpoint(
        "commit.unnamed",
        "the commit of Spark is written, not yet linked to its version",
        ("spark", "resync"),
        ("delta",),
        only_actions=(KILL_JVM, FREEZE),
    ),
    Failpoint("publish.before", "rows are on a branch that is not published", ("merge", "resync"), ("iceberg",), LAKE),
    Failpoint(
        "publish.after", "the branch is published, the answer is not received", ("merge", "resync"), ("iceberg",), LAKE
    ),
    Failpoint(
        "commit.before",
        "all statements of the transaction are done, before its commit",
        ("merge", "pause"),
        DATABASES,
        SERVER,
    ),
    Failpoint(
        "commit.submitted",
        "the job of a commit is submitted, its end is not seen",
        ("merge", "pause"),
        ("bigquery",),
        SERVER,
    ),
    Failpoint(
        "commit.after",
        "the transaction is committed, the answer is not received",
        ("merge", "pause"),
        DATABASES,
        SERVER,
    ),
    Failpoint("copy.anchored", "the anchor of a copy is set", ("snapshot", "resync")),
    Failpoint(
        "target.write",
        "during the write of a file in the lake",
        ("snapshot", "plain"),
        ("delta",),
        extra_actions=(DISK_FULL,),
    ),
    Failpoint(
        "copy.before_commit",
        "a copy is named, its rows are read or readable",
        ("snapshot", "resync"),
        extra_actions=(LATE_KILL,),
    ),
    Failpoint("overwrite.before", "before the commit of a copy in the lake", ("snapshot", "resync"), ("delta",), SPARK),
    Failpoint(
        "overwrite.after",
        "a copy is committed in the lake, the answer is not received",
        ("snapshot", "resync"),
        ("delta",),
        SPARK,
    ),
    Failpoint(
        "copy.before_swap", "a copy is loaded into a table of its own", ("snapshot", "resync"), DATABASES, SERVER
    ),
    Failpoint(
        "copy.in_swap",
        "the copy has the name of the table in an open transaction, or is committed and has no name yet",
        ("snapshot", "resync"),
        DATABASES,
        SERVER,
    ),
    Failpoint(
        "copy.after_swap",
        "the copy has replaced the table, the answer is not received",
        ("snapshot", "resync"),
        DATABASES,
        SERVER,
    ),
    Failpoint("copy.after_commit", "a copy is committed, its result is not reported", ("snapshot", "resync")),
    Failpoint("verify.before_compare", "source and target are at one position, not compared", ("verify",)),
    Failpoint("repair.before_report", "differing rows are found, not reported", ("repair",), ("postgres",)),
    Failpoint("repair.before_merge", "differing rows are read again, not merged", ("repair",), ("postgres",)),
    Failpoint("repair.after_merge", "differing rows are merged, not compared again", ("repair",), ("postgres",)),
    Failpoint("upkeep.before", "a batch is merged, before the upkeep of its table", ("upkeep",)),
    Failpoint("upkeep.after", "the upkeep of a table is done, its result is not reported", ("upkeep",)),
    Failpoint("result.before", "all effects of a step are committed, its result is not written", ("extract", "merge")),
    Failpoint("result.after", "the result of a step is written, its driver still runs", ("stage", "merge")),
)


def cases() -> list[Case]:
    return [
        Case(failpoint, step, action, target)
        for failpoint in FAILPOINTS
        for step in dict.fromkeys((*failpoint.steps, *COPIES_IN_A_COMMIT))
        for target in (*failpoint.targets, *COMBINED)
        if is_case(failpoint, step, target)
        for action in actions(failpoint, step, target)
    ]


def is_case(failpoint: Failpoint, step: str, target: str) -> bool:
    if target in COMBINED:
        return bool(_reached(failpoint, target)) and _is_combined_case(failpoint, step, target)
    if step not in failpoint.steps:
        return False
    if target in ALL_STEPS or (target in WAREHOUSES and failpoint.name in SWAPS):
        return True
    if target in WAREHOUSES:
        return failpoint.name.startswith(ON_EVERY_TARGET) and step in STEPS_ON_WAREHOUSES
    if failpoint.name.startswith("load."):
        return step == "snapshot"
    if target == "spanner":
        return failpoint.name.startswith(ON_SPANNER) and step in STEPS_ON_SPANNER
    return failpoint.name.startswith(ON_EVERY_TARGET) and step in STEPS_ON_EVERY_TARGET


def _is_combined_case(failpoint: Failpoint, step: str, target: str) -> bool:
    if len(COMBINED[target]) > 1:
        known = step in failpoint.steps and step in STEPS_ON_TWO_TARGETS
        return known and failpoint.name.startswith(ON_TWO_TARGETS)
    (kind,) = COMBINED[target]
    copies = COPIES_IN_A_COMMIT if kind in DATABASES and failpoint.name.startswith("commit.") else ()
    known = step in (*failpoint.steps, *copies) and step in (STEPS_ON_SHARDS if kind in ALL_STEPS else SHARD_STEPS)
    return known and failpoint.name.startswith(ON_SHARDS) and failpoint.name not in SWAPS


def actions(failpoint: Failpoint, step: str, target: str) -> Iterator[str]:
    if failpoint.only_actions:
        yield from failpoint.only_actions
        return
    yield from (KILL, KILL_JVM) if step in WITHOUT_WRITER else DRIVER_ACTIONS if step in DRIVERS else (KILL, FREEZE)
    if lost_answer_error(failpoint, target):
        happened = any(word in failpoint.name for word in ("after", "submitted"))
        yield LOST_ANSWER if happened else LOST_REQUEST
    yield from (action for action in failpoint.extra_actions if action is not LATE_KILL or step in DRIVERS)


def lost_answer_error(failpoint: Failpoint, target: str) -> str:
    """Empty if a case has none, also where targets of a replicator reach the failpoint and have different ones."""
    if isinstance(failpoint.lost, str):
        return failpoint.lost
    reached = _reached(failpoint, target)
    return failpoint.lost.get(reached[0], "") if len(reached) == 1 else ""


def _reached(failpoint: Failpoint, target: str) -> list[str]:
    """The types of its targets that reach the failpoint."""
    return [kind for kind in COMBINED.get(target, (target,)) if kind in failpoint.targets]

"""The workloads that reach each step of the matrix. One run reaches many steps, so many cases may share it.

A workload prepares the system for its cases, executes them, and returns the last run, if there is one.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from airflow_cdc_provider.core.errors import CdcError, Fenced
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.upkeep import WINDOWS
from airflow_cdc_provider.staging.open_store import open_log
from tests.faults.carry_over import inject_quarantined, inject_unordered
from tests.faults.dag_run import DagRun
from tests.faults.injection import Died, Injection
from tests.faults.system import KEPT, SystemUnderTest
from tests.faults.targets import PostgresTarget
from tests.faults.worker import Arguments, run_task
from tests.faults.writer import ACCOUNTS, EVENTS

FEW_MUTATIONS = 45
"""Of one transaction, of which 20 are for the control row."""
_keys = itertools.count(1)
_digits = itertools.count(13)

RunDag = Callable[[Callable[[str], object]], DagRun]
"""A run of the DAG with the injections of this workload; the argument is called before each task."""


@dataclass(frozen=True)
class Workload:
    """``tasks``: step of the matrix → its task. ``shared``: cases of the stream may join. ``series``: the number of
    cases one after the other, instead of one per task."""

    execute: Callable[[SystemUnderTest, Sequence[Injection], RunDag], DagRun | None]
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


def stream(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    system.writer.step(3)
    return run_dag(lambda _: None)


def plain(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A batch of complete rows, of a table that takes changes."""
    system.writer.shapes = [ACCOUNTS]
    return stream(system, injections, run_dag)


def in_spark(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """Spark merges, although the driver could."""
    system.use(EngineMode.SPARK)
    try:
        return stream(system, injections, run_dag)
    finally:
        system.use(EngineMode.AUTO)


def in_parts(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A batch exceeds one transaction."""
    system.limit_mutations(FEW_MUTATIONS)
    try:
        return stream(system, injections, run_dag)
    finally:
        system.limit_mutations(None)


def grown(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A table gets an additional column."""
    system.execute(f"alter table {ACCOUNTS.table} add column more_{next(_keys)} text")
    return stream(system, injections, run_dag)


def altered(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A column gets a wider type. The first run applies what precedes it, the next one alters the table."""
    system.writer.step(3)
    system.execute(f"alter table {ACCOUNTS.table} alter column amount type numeric({next(_digits)},2)")
    system.writer.shapes = [ACCOUNTS]
    system.writer.step(3)
    DagRun(system).execute()
    return stream(system, injections, run_dag)


def reopened(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """The slot is lost: a new slot and a new copy of every table. The content of the log is applied before that."""
    DagRun(system).execute()
    with psycopg.connect(system.server.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [f"cdc_{system.name}"])
    return stream(system, injections, run_dag)


ADDED = {"later": "open_window", "snapshot": "snapshot"}
COPIED_AGAIN = {
    "approve": "open_window",
    "pause_stream": "reconcile.pause_stream",
    "resync": "reconcile.resync",
    "replay": "reconcile.replay",
    "resume_stream": "reconcile.resume_stream",
}


def copied(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A table is added, another one is copied again. For a case in the replay another run lands a window after that
    copy: otherwise there is nothing to replay."""

    def meanwhile(task: str) -> None:
        if task == "reconcile.replay" and any(injection.task == task for injection in injections):
            system.writer.step(20)
            DagRun(system).execute()

    steps = {injection.case.step for injection in injections}
    if steps & ADDED.keys():
        system.add_table()
    if steps & COPIED_AGAIN.keys():
        system.writer.shapes = [*{*system.writer.shapes, ACCOUNTS}]
        request(system, "resync", ACCOUNTS.table, approve_deletes=True)
    system.writer.step(3)
    return run_dag(meanwhile)


def gone(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """The source drops a table, and the copy goes with it."""
    shape = system.add_table()
    DagRun(system).execute()
    system.drop_table(shape)
    run = stream(system, injections, run_dag)
    assert not system.replicator().targets.only.state(shape.table, shape.target).exists, run.problems
    return run


def proved(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    request(system, "verify", ACCOUNTS.table)
    return stream(system, injections, run_dag)


def repaired(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """A column of the copy is damaged, one that the ledger does not have. The comparison finds it, and repairs it."""
    column, shapes = f"more_{next(_keys)}", system.writer.shapes
    system.execute(f"alter table {ACCOUNTS.table} add column {column} text")
    system.writer.step(3)
    system.writer.shapes = [EVENTS]  # further changes would cure the damage
    try:
        DagRun(system).execute()
        assert isinstance(system.target, PostgresTarget)
        copy = f"{system.target.schema}.{ACCOUNTS.target}"
        system.target.execute(f"UPDATE {copy} SET {column} = 'damaged' WHERE id % 2 = 0")
        request(system, "verify", ACCOUNTS.table, repair=True)
        run = stream(system, injections, run_dag)
        damaged = f"SELECT count(*) FROM {copy} WHERE {column} IS NOT NULL"
        assert system.target.execute(damaged) == [(0,)], run.problems
        return run
    finally:
        system.writer.shapes = shapes


def cleaned(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """One table was idle for some windows, and no window is retained longer than needed."""
    shapes = system.writer.shapes
    system.writer.shapes = [EVENTS]
    try:
        for _ in range(2):
            system.writer.step(2)
            DagRun(system).execute()
        system.keep(timedelta(0))
        return stream(system, injections, run_dag)
    finally:
        system.keep(KEPT)
        system.writer.shapes = shapes


def looked_after(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """Upkeep follows a merge of ten windows: those before the last one are landed only."""
    for _ in range(WINDOWS - 1):
        system.writer.step(1)
        DagRun(system, leave_out=["stage"]).execute()
    return stream(system, injections, run_dag)


def ordered(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """Pauses and resumes, one after the other. A repeated request changes nothing; a run skips the paused table."""
    for injection in injections:
        if injection.task == "resume":
            request(system, "pause", EVENTS.table)
        arguments: Arguments = {"tables": [EVENTS.table], "key": f"{injection.task}-{next(_keys)}"}
        inject(system, injection, arguments)
        carry_out_twice(system, injection.task, arguments)
        if injection.task == "pause" and injection is injections[-1]:
            system.writer.step(3)
            DagRun(system).execute()
            assert system.checker.read_commits()[EVENTS.table][-1].state == "paused"
        if injection.task == "pause":
            request(system, "resume", EVENTS.table)
    return stream(system, (), run_dag)


def rewound(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> DagRun:
    """Rewinds to earlier and earlier windows."""
    for _ in injections:
        system.writer.step(3)
        DagRun(system).execute()
    sealed = open_log(system.definition, system.secrets.staging).sealed()
    for number, injection in enumerate(injections, 1):
        to = {"to": str(sealed - number)}
        arguments: Arguments = {"tables": [EVENTS.table], "key": f"rewind-{next(_keys)}", "arguments": to}
        inject(system, injection, arguments)
        carry_out_twice(system, "rewind", arguments)
    return stream(system, (), run_dag)


def carry_out_twice(system: SystemUnderTest, task: str, arguments: Arguments) -> None:
    carry_out(system, task, arguments)
    before = commits(system)
    carry_out(system, task, arguments)
    assert commits(system) == before, f"{task} again, with the same key, makes another commit"


def rebuilt(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> None:
    """The state store is lost."""
    for path in system.folder.glob("state.db*"):
        path.unlink()
    inject(system, injections[0], {})
    carry_out(system, "rebuild", {})


def unordered(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> None:
    inject_unordered(system.folder, injections)


def quarantined(system: SystemUnderTest, injections: Sequence[Injection], run_dag: RunDag) -> None:
    inject_quarantined(system.folder, injections)


def request(system: SystemUnderTest, kind: str, table: str, **arguments: object) -> None:
    """About the copies of a source table in all targets."""
    copies = [shape.copy for shape in system.checker.copies if shape.table == table]
    carry_out(system, kind, {"tables": copies, "arguments": arguments, "key": f"{kind}-{next(_keys)}"})


def inject(system: SystemUnderTest, injection: Injection, arguments: Arguments) -> None:
    with contextlib.suppress(CdcError, Died, OSError, psycopg.Error, injection.error):  # the next try shows the result
        injection.inject("", arguments, lambda: run_task(system.replicator(), injection.task, "", arguments))


def carry_out(system: SystemUnderTest, task: str, arguments: Arguments) -> None:
    """A request that is refused because of a concurrent commit is tried again."""
    for _ in range(3):
        with contextlib.suppress(Fenced):
            run_task(system.replicator(), task, "", arguments)
            return


def commits(system: SystemUnderTest) -> dict[str, int]:
    return {table: len([one for one in found if one.record]) for table, found in system.checker.read_commits().items()}


WORKLOADS = {
    "stream": Workload(stream, {}),
    "first": Workload(stream, {"first": "open_window"}, shared=False),
    "copies": Workload(copied, ADDED | COPIED_AGAIN),
    "plain": Workload(plain, {"plain": "merge"}, shared=False),
    "in spark": Workload(in_spark, {"spark": "merge"}, shared=False),
    "in parts": Workload(in_parts, {"parts": "merge"}, shared=False),
    "grown": Workload(grown, {"grown": "extract"}),
    "altered": Workload(altered, {"altered": "stage"}, shared=False),
    "gone": Workload(gone, {"gone": "open_window"}, shared=False),
    "reopen": Workload(reopened, {"reopen": "open_window"}, shared=False),
    "proved": Workload(proved, {"verify": "verify"}, shared=False),
    "repaired": Workload(repaired, {"repair": "verify"}, shared=False),
    "cleaned": Workload(cleaned, {"clean": "close_window"}),
    "looked after": Workload(looked_after, {"upkeep": "merge"}),
    "orders": Workload(ordered, {"pause": "pause", "resume": "resume"}, shared=False, series=5),
    "rewind": Workload(rewound, {"rewind": "rewind"}, shared=False, series=4),
    "unordered": Workload(unordered, {"unordered": "stage"}, shared=False),
    "quarantined": Workload(quarantined, {"quarantined": "stage"}, shared=False),
    "rebuilt": Workload(rebuilt, {"rebuild": "rebuild"}, shared=False),
}

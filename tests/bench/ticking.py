"""Whole ticks against the cost of starting Spark; the cost of a tick without changes; parsing."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.state.store import StateStore
from tests.bench.figures import Figure, alternating, seconds
from tests.bench.idle_run import run_idle, settled
from tests.bench.rig import Rig, run_bare, submit


class Ticker:
    """A replicator with many tables, copied, that lands and merges one window per tick."""

    def __init__(self, rig: Rig, tables: int, changes_per_table: int) -> None:
        self.rig = rig
        self.changes = changes_per_table
        self.names = [f"items{number}" for number in range(tables)]
        self.database = rig.database(dict.fromkeys(self.names, 20_000))
        self.replicator = rig.replicator(self.database, self.names)
        self.lo = dict(self.replicator.source.open_stream([f"public.{name}" for name in self.names]))
        submit(self.replicator, self.replicator.step(StepKind.SNAPSHOT))
        self.window = 0

    def change(self) -> None:
        for name in self.names:
            self.rig.execute(self.database, f"update {name} set total = total + 1 where id <= {self.changes}")

    def tick(self) -> float:
        """Seconds of the three applications, started one after another as the scheduler does."""
        self.change()
        replicator = self.replicator
        started = time.monotonic()
        limit = dict(replicator.source.status(self.lo, [f"public.{name}" for name in self.names]).limit)
        self.window += 1
        extract = replicator.step(StepKind.EXTRACT, window=self.window, lo=self.lo, limit=limit)
        landed = submit(replicator, extract).window
        assert landed
        assert landed.records == self.changes * len(self.names)
        self.lo = landed.hi
        stage = replicator.step(StepKind.STAGE, window=self.window)
        submit(replicator, stage)
        submit(replicator, replicator.step(StepKind.MERGE, merge_of=stage.attempt, window=self.window))
        return time.monotonic() - started


def ticks(rig: Rig, tables: int, changes_per_table: int, rounds: int) -> list[Figure]:
    ticker = Ticker(rig, tables, changes_per_table)
    tick_s, bare_s = alternating(rounds, ticker.tick, lambda: run_bare(ticker.replicator))
    ratio = tick_s / (3 * bare_s)
    return [
        Figure(
            f"tick: {tables} tables, {tables * changes_per_table:,} changes / three bare starts of Spark",
            ratio,
            "x",
            "<= 2.5",
            ratio <= 2.5,
            f"{tick_s:.1f} s, one bare start {bare_s:.1f} s",
        ),
    ]


def many_tables(rig: Rig, tables: int, changes_per_table: int) -> list[Figure]:
    ticker = Ticker(rig, tables, changes_per_table)
    took = ticker.tick()
    return [
        Figure(
            f"tick: {tables} tables x {changes_per_table:,} changes, per table",
            took / tables,
            "s",
            "< 4 s",
            took / tables < 4,
            f"{took:.1f} s in all",
        )
    ]


def parsing(folder: Path, replicators: int) -> list[Figure]:
    """Building DAGs as the DAG processor does, after the imports of Airflow."""
    from airflow_cdc_provider.factory import build_dag

    example = Path(__file__).parents[2] / "dags" / "replicators" / "shop.yaml"
    text = example.read_text()
    (folder / "replicators").mkdir()
    paths = [folder / f"shop{number}.py" for number in range(replicators)]
    for path in paths:
        yaml = folder / "replicators" / f"{path.stem}.yaml"
        yaml.write_text(text.replace("name: shop\n", f"name: {path.stem}\n"))
    build_dag(paths[0])
    took = seconds(lambda: [build_dag(path) for path in paths])
    each = took / replicators * 1000
    return [
        Figure(f"parse of {replicators} replicators, each", each, "ms", "< 30 ms", each < 30, f"{took:.1f} s in all")
    ]


def idle(rig: Rig, tables: int) -> list[Figure]:
    """CPU of a run without new changes, after the imports."""
    names = [f"items{number}" for number in range(tables)]
    replicator = rig.replicator(rig.database(dict.fromkeys(names, 100)), names)
    opened = settled(replicator, StateStore(f"sqlite:///{replicator.folder}/state.db"))
    run_idle(opened)
    before = cpu()
    run_idle(opened)
    used = cpu() - before
    return [Figure(f"nothing new, {tables} tables: CPU of the run", used, "s", "< 1 s", used < 1, "no JVM")]


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

"""First copies against COPY alone."""

from __future__ import annotations

import psycopg

from airflow_cdc_provider.core.decisions.steps import StepKind, StepResult
from tests.bench.equality import must_be_identical
from tests.bench.figures import Figure, alternating, seconds
from tests.bench.rig import Rig, submit

WANTED_RATE = 0.3


def measure(rig: Rig, rows: int, rounds: int) -> list[Figure]:
    """The rate of a whole cold snapshot process as a share of the rate of ``COPY … TO STDOUT``."""
    database = rig.database({"items": rows})
    memory: list[int] = []
    results: list[StepResult] = []

    def copy() -> float:
        return seconds(lambda: drain(rig.server.dsn(database)))

    def snapshot() -> float:
        replicator = rig.replicator(database, ["items"])
        step = replicator.step(StepKind.SNAPSHOT)
        took = seconds(lambda: results.append(submit(replicator, step)))
        memory.append(results[-1].peak_memory_bytes.get("jvm_heap", 0))
        must_be_identical(rig, database, replicator)
        return took

    copy_s, snapshot_s = alternating(rounds, copy, snapshot)
    ratio = copy_s / snapshot_s
    phases = results[-1].phases
    working = copy_s / max(snapshot_s - phases.get("start", 0.0), 0.001)
    return [
        Figure(
            f"snapshot of {rows:,} rows x 12 columns / COPY, whole process",
            ratio,
            "x",
            f">= {WANTED_RATE} (10 M)",
            ratio >= WANTED_RATE,
            f"{rows / snapshot_s / 1000:.0f} k rows/s, COPY {rows / copy_s / 1000:.0f} k; after start {working:.2f} x",
        ),
        Figure(
            "driver heap of the snapshot",
            max(memory) / 2**30,
            "GiB",
            "< 1 GiB",
            max(memory) < 2**30,
            f"python {results[-1].peak_memory_bytes.get('python', 0) >> 20} MiB",
        ),
    ]


def drain(dsn: str) -> None:
    with psycopg.connect(dsn) as connection, connection.cursor().copy("copy items to stdout") as copy:
        for _ in copy:
            pass

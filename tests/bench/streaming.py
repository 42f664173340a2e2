"""Extraction and merges: against the bare slot, against a hand-written MERGE, and into growing tables."""

from __future__ import annotations

import os

import psycopg

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.targets.iceberg.catalog import catalog_location, spark_settings
from tests.bench.equality import must_be_identical
from tests.bench.figures import Figure, seconds
from tests.bench.rig import Rig, of_table, run_naive, submit

MIXED = (
    "update items set total = total + 1, note = 'changed' where id % {step} between 1 and 7",
    "insert into items select id + 1000000000, customer_id, status, total, tax, rate, payload, note, active, "
    "placed_at, updated_at, ship_on from items where id % {step} between 1 and 2",
    "delete from items where id % {step} = 9 and id < 1000000000",
)
"""Seven updates, two inserts and one delete of every ``step`` rows."""


class Stream:
    """A replicator whose table is copied into a target of this type."""

    def __init__(self, rig: Rig, rows: int, kind: str = "delta") -> None:
        self.rig = rig
        self.database = rig.database({"items": rows})
        target = Target(kind, f"{rig.folder}/lake{next(rig.numbers)}")
        self.replicator = rig.replicator(self.database, ["items"], target)
        self.lo = dict(self.replicator.source.open_stream(["public.items"]))
        submit(self.replicator, self.replicator.step(StepKind.SNAPSHOT))
        self.window = 0

    def extract(self) -> tuple[int, float]:
        """Lands a window of all new changes. Returns records and seconds of landing, after the start of a Python
        worker."""
        limit = dict(self.replicator.source.status(self.lo, ["public.items"]).limit)
        self.window += 1
        step = self.replicator.step(StepKind.EXTRACT, window=self.window, lo=self.lo, limit=limit)
        result = submit(self.replicator, step)
        assert result.window
        self.lo = result.window.hi
        return result.window.records, result.phases["land"]

    def merge(self) -> tuple[float, float]:
        """Stages and merges the windows after the cursor. Returns the seconds of each, after the start of Spark."""
        stage = self.replicator.step(StepKind.STAGE, window=self.window)
        staged = submit(self.replicator, stage)
        merged = submit(
            self.replicator, self.replicator.step(StepKind.MERGE, merge_of=stage.attempt, window=self.window)
        )
        must_be_identical(self.rig, self.database, self.replicator)
        return of_table(staged), of_table(merged)


def extraction(rig: Rig, changes: int) -> list[Figure]:
    stream = Stream(rig, changes)
    rig.execute(stream.database, "update items set total = total + 1")
    publication = stream.replicator.definition.name
    peek_s = seconds(lambda: peek(rig.server.dsn(stream.database), f"cdc_{publication}", publication))
    records, land_s = stream.extract()
    return [
        Figure(
            f"extract {records:,} changes / bare peek of the slot",
            land_s / peek_s,
            "x",
            "reported",
            True,
            f"{records / land_s / 1000:.0f} k changes/s; the slot alone gives {records / peek_s / 1000:.0f} k/s",
        )
    ]


def peek(dsn: str, slot: str, publication: str) -> None:
    call = "select count(*) from pg_logical_slot_peek_binary_changes(%s, null, null, 'proto_version', '1', "
    call += "'publication_names', %s)"
    with psycopg.connect(dsn) as connection:
        connection.execute(call.encode(), [slot, publication])


def mixed_merge(rig: Rig, rows: int, changes: int, kind: str = "delta") -> list[Figure]:
    """``changes`` mixed changes into ``rows`` rows, against the same merge written by hand."""
    stream = Stream(rig, rows, kind)
    for statement in MIXED:
        rig.execute(stream.database, statement.format(step=rows * 10 // changes))
    records, _ = stream.extract()
    by_hand_s = naive(stream)
    stage_s, merge_s = stream.merge()
    ours = stage_s + merge_s
    return [
        Figure(
            f"merge of {records:,} mixed changes into {rows:,} rows of {kind}: by hand / ours",
            by_hand_s / ours,
            "x",
            ">= 1",
            by_hand_s >= ours,
            f"ours {stage_s:.1f} + {merge_s:.1f} s, by hand {by_hand_s:.1f} s, after the start of Spark",
        )
    ]


def naive(stream: Stream) -> float:
    """The hand-written merge, on a copy of the table, of the same window."""
    replicator = stream.replicator
    target = replicator.definition.target
    iceberg = target.type == "iceberg"
    wanted = {
        "settings": spark_settings(catalog_location(target, replicator.secrets.target)) if iceberg else {},
        "target": replicator.named("items"),
        "copy": replicator.target.locate("by_hand") if iceberg else f"delta.`{replicator.folder}/by_hand`",
        "format": target.type,
    }
    return run_naive(replicator, wanted)


def slope(rig: Rig, small: int, large: int, changes: int, kind: str = "delta") -> list[Figure]:
    """The same clustered changes into a table and into one sixteen times its size."""
    costs = []
    for rows in (small, large):
        stream = Stream(rig, rows, kind)
        os.sync()  # the writes of the copy are on disk
        times = []
        for _ in range(4):
            first = rows - changes * 2
            clustered = f"id between {first} and {first + changes - 1}"
            rig.execute(stream.database, f"update items set total = total + 1 where {clustered}")
            stream.extract()
            times.append(sum(stream.merge()))
        costs.append(min(times))
    ratio = costs[1] / costs[0]
    return [
        Figure(
            f"merge of {changes:,} clustered changes, {small:,} to {large:,} rows of {kind}",
            ratio,
            "x",
            "< 1.3",
            ratio < 1.3,
            f"{costs[0]:.1f} s and {costs[1]:.1f} s",
        )
    ]

"""Merges of a window's changes into warehouses, against a job written by hand: Spark SQL keeps the newest row of each
key, the warehouse's own client loads and merges these. Both sides start from the same change log and have the same end.

Warehouses are stand-ins except PostgreSQL. The time of their engine, DuckDB or PostgreSQL, is part of both sides. That
of Spanner is written in Python and takes most of the time of both: its CPU seconds are subtracted, and the detail has
the ratio with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.sandbox.bigquery import EmbeddedBigQuery
from airflow_cdc_provider.sandbox.redshift import EmbeddedRedshift
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.sandbox.spanner import EmbeddedSpanner
from tests.bench.figures import Figure, seconds
from tests.bench.peers.environments import run_script
from tests.bench.rig import Rig, of_table, run_naive, submit
from tests.bench.streaming import MIXED
from tests.bench.warehouses.bigquery import BigQuery
from tests.bench.warehouses.postgres import Postgres
from tests.bench.warehouses.redshift import Redshift
from tests.bench.warehouses.snowflake import Snowflake
from tests.bench.warehouses.spanner import Spanner
from tests.bench.warehouses.warehouse import COLUMNS, OP, SUMS, TYPES, Warehouse, texts
from tests.buckets import Moto
from tests.spark.replicator import Replicator

WANTED = 1.5
"""The time of others / ours, at least."""

FOR_DLT, OF_DLT = "for_dlt", "by_dlt"
COPIES = ("before_ours", "after_ours")
"""The client of the job by hand runs before ours and after it, each time on a copy of its own; the faster run
counts."""

Open = Callable[[Rig], contextlib.AbstractContextManager[Warehouse]]


@contextlib.contextmanager
def postgres(rig: Rig) -> Iterator[Warehouse]:
    yield Postgres(rig.server, rig.database({}))


@contextlib.contextmanager
def snowflake(rig: Rig) -> Iterator[Warehouse]:
    with EmbeddedSnowflake() as server:
        yield Snowflake(server)


@contextlib.contextmanager
def bigquery(rig: Rig) -> Iterator[Warehouse]:
    with EmbeddedBigQuery() as server:
        yield BigQuery(server)


@contextlib.contextmanager
def redshift(rig: Rig) -> Iterator[Warehouse]:
    with Moto(rig.folder / "moto.log") as store, EmbeddedRedshift(store.connection) as server:
        yield Redshift(server, store)


@contextlib.contextmanager
def spanner(rig: Rig) -> Iterator[Warehouse]:
    with EmbeddedSpanner() as server:
        yield Spanner(server)


WAREHOUSES: dict[str, Open] = {
    "postgres": postgres,
    "snowflake": snowflake,
    "bigquery": bigquery,
    "redshift": redshift,
    "spanner": spanner,
}


def merging(rig: Rig, kind: str, rows: int, changes: int, beside_dlt: bool = False) -> list[Figure]:
    """``changes`` mixed changes into ``rows`` rows. ``beside_dlt``: for PostgreSQL. dlt has no destination Spanner, its
    client of BigQuery takes no other address, and the stand-ins of Snowflake and Redshift reject its statements."""
    database = rig.database({"items": rows})
    with WAREHOUSES[kind](rig) as warehouse:
        replicator = rig.replicator(database, ["items"], warehouse.target, warehouse.connection, stage=warehouse.stage)
        lo = dict(replicator.source.open_stream(["public.items"]))
        snapshot = submit(replicator, replicator.step(StepKind.SNAPSHOT))
        for statement in MIXED:
            rig.execute(database, statement.format(step=rows * 10 // changes))
        limit = dict(replicator.source.status(lo, ["public.items"]).limit)
        submit(replicator, replicator.step(StepKind.EXTRACT, window=1, lo=lo, limit=limit))
        for copy in (*COPIES, *([FOR_DLT] if beside_dlt else [])):
            warehouse.copy(copy)
        newest_s, files = newest_by_hand(replicator)
        before = timed(warehouse, lambda: warehouse.by_hand(COPIES[0], files))
        stage = replicator.step(StepKind.STAGE, window=1)
        staged = submit(replicator, stage)
        engine_s = engine_seconds(warehouse)
        merged = submit(replicator, replicator.step(StepKind.MERGE, merge_of=stage.attempt, window=1))
        engine_s = engine_seconds(warehouse) - engine_s
        after = timed(warehouse, lambda: warehouse.by_hand(COPIES[1], files))
        dlt_s = by_dlt(rig, warehouse, files) if isinstance(warehouse, Postgres) and beside_dlt else None
        source = sums_of_source(rig, database)
        found = {name: warehouse.sums(name) for name in ("items", *COPIES, *([OF_DLT] if dlt_s else []))}
        assert found == dict.fromkeys(found, source), (source, found)
    ours = Timed(of_table(staged) + of_table(merged), engine_s)
    by_hand = min(before, after)
    what = f"fold, load and merge of {changes:,} changes into {rows:,} rows of {kind}"
    detail = (
        f"ours {of_table(staged):.1f} + {of_table(merged):.1f} s, "
        f"by hand {newest_s:.1f} + {before.seconds:.1f} or {after.seconds:.1f} s, with the start of the session; "
        f"the copy {rows / of_table(snapshot) / 1000:.0f} k rows/s"
    )
    if ours.engine_s:
        ratio = (newest_s + by_hand.seconds) / ours.seconds
        detail += f"; CPU of the stand-in {ours.engine_s:.1f}, {by_hand.engine_s:.1f} s, with which it is {ratio:.2f} x"
    figure = at_least(f"{what}: by hand / ours", (newest_s + by_hand.own_s) / ours.own_s, detail)
    if dlt_s is None:
        return [figure]
    of_dlt = f"newest rows by hand {newest_s:.1f} + dlt {dlt_s:.1f} s"
    return [figure, at_least(f"{what}: dlt / ours", (newest_s + dlt_s) / ours.seconds, of_dlt)]


@dataclass(frozen=True, order=True)
class Timed:
    """``engine_s``: CPU seconds of an engine that is not measured."""

    seconds: float
    engine_s: float

    @property
    def own_s(self) -> float:
        return self.seconds - self.engine_s


def timed(warehouse: Warehouse, action: Callable[[], object]) -> Timed:
    engine_s = engine_seconds(warehouse)
    elapsed_s = seconds(action)
    return Timed(elapsed_s, engine_seconds(warehouse) - engine_s)


def engine_seconds(warehouse: Warehouse) -> float:
    return warehouse.engine_s() if isinstance(warehouse, Spanner) else 0


def newest_by_hand(replicator: Replicator) -> tuple[float, list[Path]]:
    """Seconds, and Parquet files with the newest row of each key."""
    folder = Path(replicator.folder, "newest")
    wanted = {
        "settings": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
        "target": str(folder),
        "columns": ", ".join(f"{name} {kind}" for name, kind in TYPES.items()),
        "op": OP,
        "format": "parquet",
    }
    return run_naive(replicator, wanted), sorted(folder.glob("*.parquet"))


def at_least(what: str, value: float, detail: str) -> Figure:
    return Figure(what, value, "x", f">= {WANTED}", value >= WANTED, detail)


def by_dlt(rig: Rig, warehouse: Postgres, files: Sequence[Path]) -> float:
    """The time of the merge in a process that has done the first copy."""
    answer = run_script(
        "dlt",
        "dlt_warehouse_script.py",
        warehouse=warehouse.dsn,
        copied=FOR_DLT,
        folder=str(rig.folder / "dlt"),
        files=list(map(str, files)),
        columns=list(COLUMNS),
        op=OP,
    )
    return float(answer["seconds"])


def sums_of_source(rig: Rig, database: str) -> list[str]:
    with psycopg.connect(rig.server.dsn(database)) as session:
        session.execute("SET timezone TO 'UTC'")
        return texts(session.execute(f"SELECT {SUMS} FROM items".encode()).fetchone() or ())

"""A merge into PostgreSQL against a hand-written script: COPY, DELETE, INSERT … ON CONFLICT."""

from __future__ import annotations

import io
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
from pyarrow import csv

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.spec.definition import Target
from tests.bench.equality import SUMS
from tests.bench.figures import Figure, seconds
from tests.bench.rig import Rig, of_table, submit
from tests.bench.streaming import MIXED

WANTED = 1.3


def merging(rig: Rig, rows: int, changes: int) -> list[Figure]:
    """``changes`` mixed changes into ``rows`` rows, from the same staged rows."""
    database, warehouse = rig.database({"items": rows}), rig.database({})
    rig.execute(warehouse, "CREATE SCHEMA shop")
    server = rig.server
    info = ConnectionInfo("warehouse", server.host, server.port, server.user, server.password, schema=warehouse)
    target = Target("postgres", connection="warehouse", options={"schema": "shop"})
    replicator = rig.replicator(database, ["items"], target, info)
    lo = dict(replicator.source.open_stream(["public.items"]))
    snapshot = submit(replicator, replicator.step(StepKind.SNAPSHOT))
    for statement in MIXED:
        rig.execute(database, statement.format(step=rows * 10 // changes))
    limit = dict(replicator.source.status(lo, ["public.items"]).limit)
    submit(replicator, replicator.step(StepKind.EXTRACT, window=1, lo=lo, limit=limit))
    stage = replicator.step(StepKind.STAGE, window=1)
    submit(replicator, stage)
    rig.execute(warehouse, "CREATE TABLE by_hand (LIKE shop.items INCLUDING ALL)")
    rig.execute(warehouse, "INSERT INTO by_hand SELECT * FROM shop.items")
    rig.execute(warehouse, "ANALYZE")
    files = sorted(Path(replicator.folder, "staging").rglob("batches/*/*/rows/*.parquet"))
    by_hand_s = seconds(lambda: by_hand(rig.server.dsn(warehouse), files))
    merged = submit(replicator, replicator.step(StepKind.MERGE, merge_of=stage.attempt, window=1))
    must_be_equal(rig, database, warehouse)
    ours_s = of_table(merged)
    return [
        Figure(
            f"merge of {changes:,} mixed changes into {rows:,} rows of PostgreSQL: ours / by hand",
            ours_s / by_hand_s,
            "x",
            f"<= {WANTED}",
            ours_s <= WANTED * by_hand_s,
            f"ours {ours_s:.1f} s after the start of Spark, by hand {by_hand_s:.1f} s; "
            f"the copy {rows / of_table(snapshot) / 1000:.0f} k rows/s",
        )
    ]


def by_hand(dsn: str, files: list[Path]) -> None:
    """Loads the staged rows with COPY, deletes, upserts, commits."""
    names = [name for name in pq.read_schema(files[0]).names if name not in ("_cdc_op", "_cdc_known")]
    listed = ", ".join(names)
    sets = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
    with psycopg.connect(dsn) as connection:
        connection.execute("SET timezone TO 'UTC'")
        connection.execute("CREATE TEMP TABLE changes (LIKE by_hand, _cdc_op text)")
        with connection.cursor().copy(f"COPY changes ({listed}, _cdc_op) FROM STDIN (FORMAT csv)".encode()) as copy:
            for file in files:
                text = io.BytesIO()
                rows = pq.read_table(file, columns=[*names, "_cdc_op"])
                csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
                copy.write(text.getbuffer())
        connection.execute("ANALYZE changes")
        connection.execute("DELETE FROM by_hand USING changes WHERE changes._cdc_op = 'D' AND by_hand.id = changes.id")
        connection.execute(
            f"INSERT INTO by_hand ({listed}) SELECT {listed} FROM changes WHERE _cdc_op <> 'D' "
            f"ON CONFLICT (id) DO UPDATE SET {sets}".encode()
        )


def must_be_equal(rig: Rig, database: str, warehouse: str) -> None:
    """Equal sums in the source, in the target and in the table merged by hand."""
    answers = []
    for name, table in ((database, "items"), (warehouse, "shop.items"), (warehouse, "by_hand")):
        with psycopg.connect(rig.server.dsn(name)) as connection:
            answers.append(connection.execute(f"select {SUMS} from {table}".encode()).fetchone())
    assert answers[0] == answers[1] == answers[2], answers

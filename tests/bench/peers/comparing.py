"""Our figures and those of other tools, on the same rows in the same run."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg.rows import dict_row

from airflow_cdc_provider.connectors.sources.postgres.positions import parse_lsn
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.replication import stream_messages
from airflow_cdc_provider.core.decisions.steps import StepKind
from tests.bench.equality import must_be_equal, must_be_identical, of_delta, of_source
from tests.bench.figures import Figure, alternating, seconds
from tests.bench.peers.environments import environment, run_script
from tests.bench.rig import Rig, submit
from tests.bench.streaming import MIXED, Stream
from tests.debezium.connection_settings import connection_settings

ROUNDS = 3
TYPES = pa.schema(
    [
        *((name, pa.int64()) for name in ("id", "customer_id")),
        ("status", pa.string()),
        *((name, pa.decimal128(12, 2)) for name in ("total", "tax")),
        ("rate", pa.float64()),
        *((name, pa.string()) for name in ("payload", "note")),
        ("active", pa.bool_()),
        ("placed_at", pa.timestamp("us", "UTC")),
        ("updated_at", pa.timestamp("us")),
        ("ship_on", pa.date32()),
    ]
)
CHOSEN = ", ".join(f"{name}::text" if name == "payload" else name for name in TYPES.names)
LIMIT_S = 300


def snapshots(rig: Rig, rows: int) -> list[Figure]:
    """Whole cold processes. sling cannot write Delta; it writes CSV, which is less work."""
    database = rig.database({"items": rows})
    folders = (rig.folder / f"copy{number}" for number in itertools.count())
    for peer in ("dlt", "sling"):
        environment(peer)

    def ours() -> float:
        replicator = rig.replicator(database, ["items"])
        step = replicator.step(StepKind.SNAPSHOT)
        took = seconds(lambda: submit(replicator, step))
        must_be_identical(rig, database, replicator)
        return took

    def by_dlt() -> float:
        folder = next(folders)
        settings = {"dsn": rig.server.dsn(database), "folder": str(folder), "changes": ""}
        took = seconds(lambda: run_script("dlt", "dlt_script.py", **settings))
        must_be_equal(of_source(rig, database), of_delta(f"{folder}/lake/items"))
        return took

    def by_sling() -> float:
        folder = next(folders)
        took = seconds(lambda: sling(rig.server.dsn(database), folder))
        (text,) = folder.rglob("*.csv")
        with text.open("rb") as lines:
            assert sum(1 for _ in lines) == rows + 1
        return took

    ours_s, dlt_s, sling_s = alternating(ROUNDS, ours, by_dlt, by_sling)
    what = f"snapshot of {rows:,} rows x 12 columns, whole process"
    return [
        at_least(f"{what}: dlt / ours", dlt_s, ours_s, 3),
        at_least(f"{what}: sling / ours", sling_s, ours_s, 2),
    ]


def sling(dsn: str, folder: Path) -> None:
    (binary,) = environment("sling").glob("lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64")
    folder.mkdir()
    options = ["--src-conn", "SOURCE", "--src-stream", "public.items"]
    options += ["--tgt-object", f"file://{folder}/items.csv", "--mode", "full-refresh"]
    done = subprocess.run(
        [binary, "run", *options],
        env={**os.environ, "SOURCE": f"{dsn}?sslmode=disable", "SLING_DISABLE_TELEMETRY": "true"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def extraction(rig: Rig, changes: int) -> list[Figure]:
    """The same changes in two slots, each measured from the call to its slot. The engine reports its time from the
    first event, so the time of the server until its first message is added."""
    stream = Stream(rig, changes)
    with psycopg.connect(rig.server.dsn(stream.database), autocommit=True) as session:
        session.execute("SELECT pg_create_logical_replication_slot('peer', 'pgoutput')")
    rig.execute(stream.database, "UPDATE items SET total = total + 1")
    settings = {
        **connection_settings(rig.server),
        "database.dbname": stream.database,
        "slot.name": "peer",
        "publication.name": stream.replicator.definition.name,
        "publication.autocreate.mode": "disabled",
    }
    answer = run_script("debezium", "debezium_script.py", settings=settings, events=changes, limit_s=LIMIT_S)
    silent_s = seconds(lambda: first_message(stream, "peer"))
    records, land_s = stream.extract()
    theirs, ours = answer["events"] / (silent_s + answer["seconds"]), records / land_s
    detail = f"ours {ours / 1000:.0f} k changes/s, the engine {theirs / 1000:.0f} k/s; first message {silent_s:.1f} s"
    what = f"extract {records:,} changes: ours / Debezium engine"
    return [Figure(what, ours / theirs, "x", ">= 4", ours >= 4 * theirs, detail)]


def first_message(stream: Stream, slot: str) -> None:
    publication = quoted(stream.replicator.definition.name)
    with stream.replicator.source.client.session("bench", replication=True) as connection:
        next(stream_messages(connection, slot, publication, lo=0, limit=parse_lsn("FFFF/0")))


def merges(rig: Rig, rows: int, changes: int) -> list[Figure]:
    """After the start of each. dlt and delta-rs get the newest row of each key; ours finds it in the log."""
    stream = Stream(rig, rows)
    folder = rig.folder / f"merge{next(rig.numbers)}"
    folder.mkdir()
    before = rows_of(rig, stream.database, f"SELECT {CHOSEN} FROM items")
    pq.write_table(before, folder / "before.parquet")
    twin = rig.database({"items": rows})
    for statement in MIXED:
        rig.execute(stream.database, statement.format(step=rows * 10 // changes))
    after = rows_of(rig, stream.database, f"SELECT {CHOSEN} FROM items")
    pq.write_table(changed(before, after), folder / "changes.parquet")
    stream.extract()
    ours_s = sum(stream.merge())
    settings = {"folder": str(folder / "dlt"), "dsn": rig.server.dsn(twin), "changes": str(folder / "changes.parquet")}
    dlt_s = run_script("dlt", "dlt_script.py", **settings)["seconds"]
    must_be_equal(of_source(rig, stream.database), of_delta(f"{folder}/dlt/lake/items"))
    settings = {"rows": f"{folder}/before.parquet", "changes": settings["changes"], "table": f"{folder}/rs"}
    rs_s = run_script("delta-rs", "delta_rs_script.py", columns=TYPES.names, **settings)["seconds"]
    must_be_equal(of_source(rig, stream.database), of_delta(f"{folder}/rs"))
    what = f"merge of {changes:,} mixed changes into {rows:,} rows"
    detail = f"ours {ours_s:.1f} s, delta-rs {rs_s:.1f} s"
    return [
        at_least(f"{what}: dlt / ours", dlt_s, ours_s, 1.5),
        Figure(f"{what}: ours / delta-rs", ours_s / rs_s, "x", "<= 1.5", ours_s <= 1.5 * rs_s, detail),
    ]


def rows_of(rig: Rig, database: str, query: str) -> pa.Table:
    with psycopg.connect(rig.server.dsn(database), row_factory=dict_row) as session:
        return pa.Table.from_pylist(session.execute(query.encode()).fetchall(), TYPES)


def changed(before: pa.Table, after: pa.Table) -> pa.Table:
    """New, changed and deleted rows."""
    old = {row["id"]: row for row in before.to_pylist()}
    new = {row["id"]: row for row in after.to_pylist()}
    rows = [{**row, "gone": False} for key, row in new.items() if row != old.get(key)]
    rows += [{**row, "gone": True} for key, row in old.items() if key not in new]
    return pa.Table.from_pylist(rows, TYPES.append(pa.field("gone", pa.bool_())))


def at_least(what: str, theirs_s: float, ours_s: float, times: float) -> Figure:
    detail = f"ours {ours_s:.1f} s, theirs {theirs_s:.1f} s"
    return Figure(what, theirs_s / ours_s, "x", f">= {times}", theirs_s >= times * ours_s, detail)

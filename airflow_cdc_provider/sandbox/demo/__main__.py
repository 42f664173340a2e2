"""`make demo`: a live PostgreSQL, a real Airflow, one replicator, and the proof that both sides are identical.

Everything lives in one temporary folder and is gone afterwards, also when interrupted. ``KEEP=1`` leaves Airflow up
until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from airflow_cdc_provider.sandbox import shop
from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres

REPLICATOR = """\
name: shop
source: {{type: postgres, connection: shop_db, publication: cdc_shop}}
target: {{type: delta, location: {home}/lake/shop}}
tables:
  - source: public.customers
  - source: public.orders
    on_delete: soft
  - source: public.order_lines
    columns: {{exclude: [internal_note]}}
    cluster_by: [order_id]
  - source: public.page_views
staging: {{location: {home}/lake/_cdc, retain: 1h}}
spark: {{connection: spark_default, conf: {{spark.driver.memory: 2g}}}}
freshness: 10m
dag: {{owner: demo, tags: [demo], retries: 2, retry_delay: 10s}}
"""

DAG_FILE = """\
from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)  # an Airflow DAG, made of replicators/shop.yaml
"""

STEPS_PER_ROUND = 150
"""Transactions the load generator makes before each further run; each changes up to 160 rows."""

WRITER_RESTS_S = 0.2
"""A writer without rests would take one of two cores from Airflow and Spark."""

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Run the demo. 0 when both sides are identical, 1 when not."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    with workplace() as home, EmbeddedPostgres() as database:
        say(started, f"PostgreSQL listens on 127.0.0.1:{database.port}")
        shop.build(database.dsn(), shop.DEMO)
        say(started, f"a shop with {shop.DEMO.rows:,} rows in {len(shop.TABLES)} tables, one of them without a key")
        airflow = EmbeddedAirflow(home / "airflow", connections(database))
        write_replicator(airflow, home)
        with airflow:
            say(started, f"Airflow is up at {airflow.url}")
            airflow.wait_for_dag("shop")
            identical = replicate(started, airflow, database)
            say(started, "done" if identical else "the two sides differ")
            if os.environ.get("KEEP"):
                keep(airflow)
    return 0 if identical else 1


def replicate(started: float, airflow: EmbeddedAirflow, database: EmbeddedPostgres) -> bool:
    follow(started, airflow, "first run: copies the four tables")
    load = shop.Load(database.dsn(), rest_s=WRITER_RESTS_S)
    load.run(STEPS_PER_ROUND)
    load.truncate()
    follow(started, airflow, "second run: follows updates, deletes, key changes, key swaps and a truncate")
    load.grow("channel")
    with load:
        follow(started, airflow, "third run: an added column, while a writer goes on")
        changes = "  ".join(f"{kind} {count:,}" for kind, count in sorted(load.done.items()))
        say(started, f"rows changed at the source so far: {changes}")
        say(started, "verify: both sides at one position, while the writer goes on")
        return verify(airflow)


def follow(started: float, airflow: EmbeddedAirflow, what: str) -> None:
    say(started, what)
    run = airflow.trigger("shop")
    if airflow.wait("shop", run) != "success":
        for task, state in airflow.tasks("shop", run).items():
            if state in ("failed", "upstream_failed"):
                console.print(f"task {task} {state}:\n{airflow.task_log('shop', run, task)}", markup=False)
        raise SystemExit(f"run {run} failed")


def verify(airflow: EmbeddedAirflow) -> bool:
    done = subprocess.run(
        [airflow.python, "-m", "airflow", "cdc", "verify", "shop", "--now", "--wait"],
        env=airflow.environment,
        cwd=airflow.home,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0


def write_replicator(airflow: EmbeddedAirflow, home: Path) -> None:
    (airflow.dags / "replicators").mkdir()
    (airflow.dags / "replicators" / "shop.yaml").write_text(REPLICATOR.format(home=home))
    (airflow.dags / "shop.py").write_text(DAG_FILE)


def connections(database: EmbeddedPostgres) -> dict[str, dict[str, object]]:
    return {
        "shop_db": {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": database.port,
            "login": database.user,
            "password": database.password,
            "schema": "postgres",
        },
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
    }


def keep(airflow: EmbeddedAirflow) -> None:
    user, password = airflow.login
    console.print(f"Airflow stays up: {airflow.url}  user {user}  password {password}  (Ctrl-C ends it)")
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="cdc-demo-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def say(started: float, text: str) -> None:
    console.print(f"[{time.monotonic() - started:5.0f} s] {text}", markup=False)


if __name__ == "__main__":
    sys.exit(main())

"""A live PostgreSQL, a Salesforce org, one Airflow, two replicators, and the proof that the copies are identical.

Everything lives in one temporary folder and is gone afterwards, also when interrupted. ``KEEP=1`` leaves Airflow up
until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from airflow_cdc_provider.appcds import archive
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.sandbox import shop as database_shop
from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.demo import crm, shop
from airflow_cdc_provider.sandbox.demo.progress import Progress
from airflow_cdc_provider.sandbox.demo.stage import Failed, Stage, console
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess

NEXT = """
Next:
  make demo KEEP=1                  the same, and Airflow stays up
  less dags/replicators/shop.yaml   a replicator to begin with
  less docs/guides/sources.md       what each kind of source needs
  .venv/bin/airflow cdc --help      the commands of an operator
"""

INTERRUPTED = 130


def main() -> int:
    """Run the demo. 0 when both sides are identical, 1 when not."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        identical = perform(Progress(console))
    except requests.RequestException as error:
        console.print(f"Airflow does not answer: {error}", markup=False, style="red")
        return 1
    except (CdcError, Failed, RuntimeError, TimeoutError) as error:
        console.print(str(error), markup=False, style="red")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    console.print(NEXT, markup=False)
    return 0 if identical else 1


def perform(progress: Progress) -> bool:
    prepare(progress)
    with workplace() as home, EmbeddedPostgres() as database, OrgProcess(*crm.ORG) as org:
        connections: dict[str, dict[str, object]] = {
            "shop_db": shop.connection(database),
            "crm_org": crm.connection(org),
            "spark_default": {"conn_type": "spark", "host": "local[2]"},
        }
        stage = Stage(home, EmbeddedAirflow(home / "airflow", connections), progress=progress)
        stage.say(f"PostgreSQL listens on 127.0.0.1:{database.port}")
        stage.say(f"a Salesforce org listens on {org.instance_url}")
        database_shop.build(database.dsn(), database_shop.DEMO)
        stage.add(shop.NAME, shop.REPLICATOR.format(home=home))
        stage.add(crm.NAME, crm.REPLICATOR.format(home=home, pubsub_endpoint=org.pubsub_endpoint))
        with contextlib.closing(stage), contextlib.ExitStack() as up:
            with progress.shown():
                progress.tell("Airflow", "starting")
                airflow = up.enter_context(stage.airflow)
                progress.end("Airflow")
                stage.say(f"Airflow is up at {airflow.url}")
                identical = side_by_side(stage, database, org)
                stage.say("both copies are identical to their sources" if identical else "the two sides differ")
            if os.environ.get("KEEP"):
                keep(stage)
        return identical


def prepare(progress: Progress) -> None:
    """What the first run on a machine fetches and builds."""
    with progress.shown():
        progress.tell("Spark", "fetching jars, once")
        jars = class_path(["delta"])
        progress.tell("Spark", "building a class-data archive for faster starts, once")
        archive(jars)
        progress.end("Spark")


def side_by_side(stage: Stage, database: EmbeddedPostgres, org: OrgProcess) -> bool:
    """While one replicator waits for Airflow, the other one works."""
    for name in (shop.NAME, crm.NAME):
        stage.progress.tell(name, "waiting until Airflow has read its DAG")
    for name in (shop.NAME, crm.NAME):
        stage.airflow.wait_for_dag(name)
    pool = ThreadPoolExecutor()
    try:
        parts = [pool.submit(shop.play, stage, database), pool.submit(crm.play, stage, org)]
        identical = [part.result() for part in parts]
    finally:  # interrupted, the parts end when their Airflow is gone
        pool.shutdown(wait=False)
    return all(identical)


def keep(stage: Stage) -> None:
    user, password = stage.airflow.login
    console.print(
        f"\nAirflow stays up until Ctrl-C: {stage.airflow.url}\n  user {user}, password {password}", markup=False
    )
    console.print(f"In another terminal:\n  . {stage.environment_file()}\n  airflow cdc status shop", markup=False)
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


if __name__ == "__main__":
    sys.exit(main())

"""A PostgreSQL under load, a Salesforce org, one Airflow, two replicators, and a check that the copies are identical.

All files are in one temporary folder, which is deleted at the end, also after an interrupt. ``KEEP=1`` keeps Airflow
running until Ctrl-C.
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
from airflow_cdc_provider.sandbox.demo.run import DemoRun, Failed, console
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess

NEXT = """
Next:
  make demo KEEP=1                  the same, and keep Airflow running
  less dags/replicators/shop.yaml   an example of a replicator
  less docs/guides/sources.md       what each kind of source needs
  .venv/bin/airflow cdc --help      the operator's commands
"""

INTERRUPTED = 130


def main() -> int:
    """Run the demo. Returns 0 if the copies are identical to their sources, 1 if not."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        identical = run_demo(Progress(console))
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


def run_demo(progress: Progress) -> bool:
    prepare(progress)
    with (
        temporary_home() as home,
        EmbeddedPostgres() as database,
        EmbeddedPostgres() as metadata,
        OrgProcess(*crm.ORG) as org,
    ):
        connections: dict[str, dict[str, object]] = {
            "shop_db": shop.connection(database),
            "crm_org": crm.connection(org),
            "spark_default": {"conn_type": "spark", "host": "local[2]"},
        }
        run = DemoRun(home, EmbeddedAirflow(home / "airflow", metadata.dsn(), connections), progress=progress)
        keep = bool(os.environ.get("KEEP"))
        if keep:
            console.print(f"Replicators, once Airflow runs: {page_of(run)}", markup=False)
        run.log(f"PostgreSQL listens on 127.0.0.1:{database.port}")
        run.log(f"a Salesforce org listens on {org.instance_url}")
        database_shop.build(database.dsn(), database_shop.DEMO)
        run.add(shop.NAME, shop.REPLICATOR.format(home=home))
        run.add(crm.NAME, crm.REPLICATOR.format(home=home, pubsub_endpoint=org.pubsub_endpoint))
        with contextlib.closing(run), contextlib.ExitStack() as stack:
            with progress.shown():
                progress.show("Airflow", "starting")
                airflow = stack.enter_context(run.airflow)
                progress.end("Airflow")
                run.log(f"Airflow runs at {airflow.url}")
                if keep:
                    show_login(run)
                identical = replicate(run, database, org)
                run.log("both copies are identical to their sources" if identical else "a copy and its source differ")
            if keep:
                keep_running(run)
        return identical


def prepare(progress: Progress) -> None:
    """Download and build what later runs on this machine reuse."""
    with progress.shown():
        progress.show("Spark", "downloading jars, once")
        jars = class_path(["delta"])
        progress.show("Spark", "building a class-data archive for faster starts, once")
        archive(jars)
        progress.end("Spark")


def replicate(run: DemoRun, database: EmbeddedPostgres, org: OrgProcess) -> bool:
    """Run both replicators in parallel: while one waits for Airflow, the other one works."""
    for name in (shop.NAME, crm.NAME):
        run.progress.show(name, "waiting until Airflow has parsed its DAG")
    for name in (shop.NAME, crm.NAME):
        run.airflow.wait_for_dag(name)
    pool = ThreadPoolExecutor()
    try:
        futures = [pool.submit(shop.replicate, run, database), pool.submit(crm.replicate, run, org)]
        identical = [future.result() for future in futures]
    finally:  # after an interrupt the threads end when Airflow has stopped
        pool.shutdown(wait=False)
    return all(identical)


def page_of(run: DemoRun) -> str:
    return f"{run.airflow.url}/plugin/replicators"


def show_login(run: DemoRun) -> None:
    user, password = run.airflow.login
    console.print(f"  user {user}, password {password}", markup=False)


def keep_running(run: DemoRun) -> None:
    console.print(f"\nReplicators, until Ctrl-C: {page_of(run)}", markup=False)
    show_login(run)
    console.print(f"In another terminal:\n  . {run.environment_file()}\n  airflow cdc status shop", markup=False)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


@contextlib.contextmanager
def temporary_home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="cdc-demo-"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

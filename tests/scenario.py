"""A replicator on a real Airflow, for end-to-end tests: own source database, own lake, own DAG."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import psycopg

from airflow_cdc_provider.sandbox import shop
from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres

DAG_FILE = """\
from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)  # an Airflow DAG
"""

SHOP_TABLES = """\
tables:
  - source: public.customers
  - source: public.orders
    on_delete: soft
  - source: public.order_lines
    columns: {exclude: [internal_note]}
    cluster_by: [order_id]
  - source: public.page_views
"""


class Scenario:
    """``name`` of the replicator, its DAG and its database. The tables of the shop are small.

    ``tables``: the YAML of the tables; ``more``: further top-level keys.
    """

    def __init__(
        self,
        name: str,
        server: EmbeddedPostgres,
        airflow: EmbeddedAirflow,
        home: Path,
        size: shop.Size = shop.SMALL,
        tables: str = SHOP_TABLES,
        more: str = "",
    ) -> None:
        self.name = name
        self.server = server
        self.airflow = airflow
        self.lake = home / name / "lake"
        self.staging = home / name / "cdc"
        self.password = server.password
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        self.dsn = server.dsn(name)
        shop.build(self.dsn, size, publication=f"cdc_{name}")
        self.load = shop.Load(self.dsn, pause_s=0.2)
        self.connect()
        self.write(tables, more)
        airflow.wait_for_dag(name)

    def connect(self, **changes: Any) -> None:
        """Replaces the Airflow connection of the source, with ``changes`` of its fields."""
        fields = {
            "connection_id": f"{self.name}_db",
            "conn_type": "postgres",
            "host": self.server.host,
            "port": self.server.port,
            "login": self.server.user,
            "password": self.password,
            "schema": self.name,
        }
        self.airflow.request("DELETE", f"/connections/{self.name}_db", missing_is_fine=True)
        self.airflow.request("POST", "/connections", json={**fields, **changes})

    def write(self, tables: str = SHOP_TABLES, more: str = "") -> None:
        """Writes the YAML and the DAG file of the replicator."""
        header = f"""\
        name: {self.name}
        source: {{type: postgres, connection: {self.name}_db, publication: cdc_{self.name}}}
        target: {{type: delta, location: {self.lake}}}
        staging: {{location: {self.staging}, retain: 1h}}
        dag: {{retries: 2, retry_delay: 1s}}
        """
        replicators = self.airflow.dags / "replicators"
        replicators.mkdir(exist_ok=True)
        text = textwrap.dedent(header) + textwrap.dedent(more) + tables
        (replicators / f"{self.name}.yaml").write_text(text)
        (self.airflow.dags / f"{self.name}.py").write_text(DAG_FILE)

    def execute(self, statement: str) -> None:
        """Runs a statement at the source, in a transaction of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def start(self, **conf: Any) -> str:
        return self.airflow.trigger(self.name, **conf)

    def finish(self, run: str, limit_s: float = 600) -> dict[str, str]:
        """Waits for a run. Returns the states of its tasks and, under ``run``, that of the run."""
        state = self.airflow.wait(self.name, run, limit_s)
        return {"run": state, **self.airflow.tasks(self.name, run)}

    def tick(self) -> dict[str, str]:
        """One whole run."""
        return self.finish(self.start())

    def must_tick(self) -> dict[str, str]:
        """One whole run. Raises AssertionError with the logs of its failed tasks."""
        run = self.start()
        states = self.finish(run)
        assert states["run"] == "success", self.failed_logs(run)
        return states

    def failed_logs(self, run: str) -> str:
        """The logs of the failed tasks of a run."""
        failed = [task for task, state in self.airflow.tasks(self.name, run).items() if state == "failed"]
        return "\n".join(f"== {task}\n{self.airflow.task_log(self.name, run, task)[-6000:]}" for task in failed)

    def cdc(self, *arguments: str, check: bool = True) -> Any:
        """``airflow cdc … --json``: the parsed answer."""
        done = self.airflow.cli("cdc", *arguments, "--json", check=check)
        return json.loads(done.stdout)

    def verify(self) -> None:
        """Source and target are identical at one position; the check of every test."""
        done = self.airflow.cli("cdc", "verify", self.name, "--now", "--wait", "--json", check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
        assert all(row["identical"] for row in json.loads(done.stdout)["tables"])

"""Replicators for the benchmarks: source tables of a given size, jobs submitted as the operator submits them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import Step, StepKind, StepResult
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.hooks.spark import UTC, java_options
from airflow_cdc_provider.logstore import class_path
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.bench.figures import seconds
from tests.spark.replicator import Replicator

ITEMS = """
create table {name} (
    id bigint primary key, customer_id bigint, status text, total numeric(12,2), tax numeric(12,2),
    rate double precision, payload jsonb, note text, active boolean,
    placed_at timestamptz, updated_at timestamp, ship_on date
);
insert into {name}
select n, n % 100000, (array['new', 'paid', 'sent'])[1 + n % 3], (n % 1000000) / 100.0, (n % 9999) / 100.0, n / 7.0,
       jsonb_build_object('k', n % 1000, 'v', md5(n::text)), md5((n * 7)::text), n % 2 = 0,
       timestamptz '2025-01-01 00:00+00' + n * interval '1 second', timestamp '2025-01-01' + n * interval '1 second',
       date '2025-01-01' + (n % 700)::int
from generate_series(1, {rows}) n;
"""
"""Twelve columns: numbers, numeric, jsonb, text, times."""


class Rig:
    """One server; each ``replicator`` is new, on a database of its own."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.numbers = itertools.count(1)

    def database(self, tables: dict[str, int]) -> str:
        """Creates a database with a table of so many rows for each name. Returns its name."""
        name = f"bench{next(self.numbers)}"
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        with psycopg.connect(self.server.dsn(name), autocommit=True) as connection:
            for table, rows in tables.items():
                connection.execute(ITEMS.format(name=table, rows=rows).encode())
            connection.execute("analyze")
        return name

    def replicator(
        self,
        database: str,
        tables: Sequence[str],
        target: Target | None = None,
        warehouse: ConnectionInfo | None = None,
        rules: Sequence[TableRule] = (),
        stage: ConnectionInfo | None = None,
    ) -> Replicator:
        name = f"r{next(self.numbers)}"
        with psycopg.connect(self.server.dsn(database), autocommit=True) as connection:
            connection.execute(f"create publication {name} for table {', '.join(tables)}".encode())
        server = self.server
        info = ConnectionInfo("source", server.host, server.port, server.user, server.password, schema=database)
        folder = self.folder / name
        folder.mkdir()
        rules = rules or [TableRule(f"public.{table}") for table in tables]
        return Replicator(folder, name, info, list(rules), target=target, warehouse=warehouse, stage=stage)

    def execute(self, database: str, statement: str) -> None:
        with psycopg.connect(self.server.dsn(database), autocommit=True) as connection:
            connection.execute(statement.encode())


def submit(replicator: Replicator, step: Step) -> StepResult:
    """Run a step to its end as an application of its own. Raises with the driver's output where it fails."""
    conf = {
        "spark.driver.extraJavaOptions": driver_options(replicator, step),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
    }
    process = replicator.submit(step, conf=conf)
    output, _ = process.communicate()
    result = replicator.result(step) if process.returncode == 0 else None
    if result is None or result.problem or any(t.problem for t in result.tables):
        raise RuntimeError(f"{step.kind} failed:\n{output[-6000:]}\n{result}")
    return result


def driver_options(replicator: Replicator, step: Step) -> str:
    """As the operator gives them."""
    return " ".join([UTC, *java_options(step.kind, None, class_path(replicator.jars))])


def of_table(result: StepResult) -> float:
    """Seconds of a job with one table, after the start of its session."""
    (table,) = result.tables
    return sum(table.phases.values())


def run_naive(replicator: Replicator, wanted: Mapping[str, Any]) -> float:
    """Seconds of ``naive_merge.py``, after the start of Spark, with the changes of all windows."""
    files = sorted(Path(replicator.folder, "staging").rglob("windows/*/*/*/*.parquet"))
    variables = {"NAIVE": json.dumps({**wanted, "files": [str(file) for file in files]})}
    step = replicator.step(StepKind.MERGE, tables=())
    process = replicator.submit(step, Path(__file__).with_name("naive_merge.py"), environment=variables)
    output, _ = process.communicate()
    assert process.returncode == 0, output[-4000:]
    (found,) = re.findall(r"naive seconds (\d+\.\d+)", output)  # a log line can follow without a line break
    return float(found)


def run_bare(replicator: Replicator) -> float:
    """Seconds of an application that starts, counts ten rows and ends: the cost of Spark itself."""
    step = replicator.step(StepKind.MERGE, tables=())
    job = Path(__file__).with_name("bare_start.py")
    options = driver_options(replicator, step)

    def run() -> None:
        process: subprocess.Popen[str] = replicator.submit(
            step, job, {"spark.driver.extraJavaOptions": options, "spark.ui.enabled": "false"}
        )
        output, _ = process.communicate()
        assert process.returncode == 0, output[-3000:]

    return seconds(run)

"""`make properties`: run ``N`` random histories (50,000 by default) on the real jobs and write the report."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.logstore import class_path
from spark_jobs.runtime.sessions import build_session
from tests.model import seeds
from tests.model.histories import RandomHistories
from tests.spark.history_runs import run_histories, run_shuffled_histories
from tests.spark.replicator import JAVA_OPTIONS, LOCAL

REPORT = Path(__file__).parents[2] / "docs" / "properties-report.md"
RunHistories = Callable[[SparkSession, Path, str, int], RandomHistories]


@dataclass(frozen=True)
class Mode:
    """``table``: its name in the rows of the report."""

    table: str
    on_delete: OnDelete
    run: RunHistories


def in_order(table: str, on_delete: OnDelete) -> Mode:
    keyed = table == "with key"
    return Mode(
        table, on_delete, lambda spark, at, seed, n: run_histories(spark, at, keyed, on_delete, seed, n, whole=True)
    )


def in_any_order(on_delete: OnDelete) -> Mode:
    return Mode(
        "in any order", on_delete, lambda spark, at, seed, n: run_shuffled_histories(spark, at, on_delete, seed, n)
    )


MODES = (
    in_order("with key", OnDelete.HARD),
    in_order("with key", OnDelete.SOFT),
    in_order("with key", OnDelete.IGNORE),
    in_order("without key", OnDelete.HARD),
    in_order("without key", OnDelete.IGNORE),
    *map(in_any_order, OnDelete),
)

HEAD = """# Property report

Written by `make properties N={count}`. A history is a random list of transactions on rows of its own; thousands
of histories share one table. The real jobs read its change records, with some duplicates, in random windows and
batches. In between the table is truncated and copied again. Each batch is merged twice, and a second attempt also
stages the first batch. Then **every version** of the Delta table is compared with the reference model
(`tests/model/source.py`): it must equal the source between two transactions. The same histories in one batch must have
the same result, and the whole log of a table with key, applied again, must change no live row. For a source that
delivers in any order the records are shuffled over all windows, and the last version is compared.

{figures}

{python}, {cores} cores. To repeat a line: `{seed}=… {histories}=… pytest tests/spark/test_merge_random.py
-k hard` (without key: `test_keyless_random.py`; in any order: `test_unordered_random.py`).

| table | on_delete | seed | histories | transactions | changes | seconds |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Line:
    mode: Mode
    seed: str
    histories: int
    transactions: int
    changes: int
    seconds: float

    def __str__(self) -> str:
        cells = (
            self.mode.table,
            self.mode.on_delete.value,
            self.seed,
            f"{self.histories:,}",
            f"{self.transactions:,}",
            f"{self.changes:,}",
            f"{self.seconds:.0f}",
        )
        return f"| {' | '.join(cells)} |"


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="python -m tests.properties", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.parse_args()
    count, at_once = int(os.environ.get("N") or 50_000), seeds.histories(5000)
    conf = {
        **LOCAL,
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.extraClassPath": ":".join(map(str, class_path(["delta"]))),
    }
    spark = build_session("properties", ["delta"], conf)
    lines: list[Line] = []
    try:
        while (left := count - sum(line.histories for line in lines)) > 0:
            mode = MODES[len(lines) % len(MODES)]
            seed, histories = seeds.new(), min(left, at_once)
            folder = Path(tempfile.mkdtemp(prefix="cdc-properties-"))
            began = time.monotonic()
            result = mode.run(spark, folder, seed, histories)
            shutil.rmtree(folder)
            transactions = result.source.transactions
            changes = sum(map(len, transactions))
            took_s = time.monotonic() - began
            lines.append(Line(mode, seed, histories, len(transactions), changes, took_s))
            print(lines[-1], flush=True)
    finally:
        spark.stop()
    REPORT.write_text(report(count, lines))
    return 0


def report(count: int, lines: list[Line]) -> str:
    totals = [sum(getattr(line, name) for line in lines) for name in ("histories", "transactions", "changes")]
    figures = "**{:,} histories, {:,} transactions, {:,} changes: no difference.**".format(*totals)
    head = HEAD.format(
        count=count,
        figures=figures,
        python=f"Python {platform.python_version()}",
        cores=os.cpu_count(),
        seed=seeds.SEED,
        histories=seeds.HISTORIES,
    )
    return head + "\n".join(map(str, lines)) + "\n"


if __name__ == "__main__":
    sys.exit(main())

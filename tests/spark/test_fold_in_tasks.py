"""Spark's tasks fold the entries of a batch as the driver does, however the entries are distributed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, canonical
from spark_jobs.folds import frames
from spark_jobs.folds.fold import Fold
from spark_jobs.folds.key_groups import ENTRIES
from spark_jobs.folds.lives import Rules
from tests.model import seeds

pytestmark = pytest.mark.jvm

RULES = Rules(("id", "v", "w"), ("id",), {"s": {}})
KEYS, CHANGES = 40, 300


def test_tasks_fold_as_the_driver_does(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ROWS_PER_TASK", CHANGES // 20)
    random = Random(seeds.seed())
    entries = list(history(random))
    random.shuffle(entries)
    table = pa.Table.from_pylist(entries, ENTRIES)
    fold = Fold(RULES)
    frame = spark.createDataFrame(table)
    on_driver = fold.rows(table).sort_by("key")
    in_tasks = frames.fold_in_tasks(frame, fold, len(entries), moved=True)
    assert in_tasks.rdd.getNumPartitions() > 10
    assert in_tasks.toArrow().sort_by("key").to_pylist() == on_driver.to_pylist(), f"again: {seeds.SEED}={seeds.seed()}"
    assert any(row["root"] for row in on_driver.to_pylist()), "partial rows that moved"


def history(random: Random) -> Iterator[dict[str, Any]]:
    """Every key starts with a row. Updates and moves do not send ``w``."""
    rows = set(range(KEYS))
    for number in range(CHANGES):
        order = f"{number:08x}"
        key = random.randrange(KEYS * 2)
        if key not in rows:
            rows.add(key)
            yield entry("insert", order, key=key, after=canonical({"id": key, "v": number, "w": number}), whole=True)
        elif random.random() < 0.3 and (new := random.randrange(KEYS * 2)) not in rows:
            rows ^= {key, new}
            after = canonical({"id": new, "v": number})
            yield entry("delete", f"{order}0", key_before=key, phase=DEPARTS, link=order)
            yield entry("insert", f"{order}1", key=new, after=after, phase=ARRIVES, link=order)
        elif random.random() < 0.2:
            rows.remove(key)
            yield entry("delete", order, key_before=key)
        else:
            yield entry("update", order, key=key, key_before=key, after=canonical({"id": key, "v": number}))


def entry(
    op: str,
    order: str,
    *,
    key: int | None = None,
    key_before: int | None = None,
    after: str | None = None,
    whole: bool = False,
    phase: int | None = None,
    link: str | None = None,
) -> dict[str, Any]:
    keys = {name: None if one is None else f"[{one}]" for name, one in (("key", key), ("key_before", key_before))}
    return (
        dict.fromkeys(ENTRIES.names)
        | keys
        | {
            "op": op,
            "after": after,
            "before_complete": False,
            "after_complete": whole,
            "order_key": order,
            "phase": phase,
            "link_id": link,
            "schema_id": "s",
        }
    )

"""Times in Debezium's messages that the lake has no type for, from files to the merge: kept as text, kept beside a
NULL, or blocking their table alone."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable, Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.connectors.formats.debezium_messages import TIME, envelope, field, key_schema, message, mysql, with_schema
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition, line

pytestmark = pytest.mark.jvm

TEXTS, NULLS, STOPPED = "shop.texts", "shop.nulls", "shop.stopped"
RULES = (
    TableRule(TEXTS, columns=Columns(cast={"v": "text"})),
    TableRule(NULLS, on_unrepresentable=OnUnrepresentable.SET_NULL),
    TableRule(STOPPED),
)
LAST_US, FAR_US = 253_402_300_799_999_999, 253_402_300_800_000_000
INFINITE, NEVER = 9_223_372_036_825_200_000, -9_223_372_036_832_400_000
FIELDS = (field("id", "int32"), field("v", "int64", f"{TIME}MicroTimestamp"))


def changed(table: str, offset: int, key: int, before: int | None, after: int | None) -> Message:
    """``before``, ``after``: the column ``v``; None where there is no row."""
    rows = [None if value is None else {"id": key, "v": value} for value in (before, after)]
    op = "c" if before is None else "d" if after is None else "u"
    name = table.removeprefix("shop.")
    payload = envelope(op, *rows, mysql(offset, table=name), None)
    return message(with_schema(payload, *FIELDS), key_schema({"id": key}), f"m.{table}", offset)


def write(folder: Path, name: str, age_s: float, messages: list[Message]) -> None:
    path = folder / "events" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(line, messages)))
    os.utime(path, (time.time() - age_s,) * 2)


def test_neighbours_of_the_calendar_limits_stay_distinct(tmp_path: Path, spark: SparkSession) -> None:
    options: dict[str, Any] = {"format": "debezium", "location": f"{tmp_path}/events", "topic_prefix": "m"}
    made = definition(tmp_path, Source("files", "", options=options), ())
    feed = FeedPipeline(tmp_path, spark, replace(made, tables=RULES))
    for number, rule in enumerate(RULES):
        table = rule.source
        write(tmp_path, f"{table}/1.jsonl", 3600 - number, [changed(table, 1, 1, None, LAST_US)])
    feed.run_successfully()
    for number, rule in enumerate(RULES):
        table = rule.source
        later = [
            changed(table, 2, 2, None, INFINITE),
            changed(table, 3, 3, None, FAR_US),
            changed(table, 4, 4, None, NEVER),
            changed(table, 5, 1, LAST_US, INFINITE),
            changed(table, 6, 2, INFINITE, LAST_US),
            changed(table, 7, 4, NEVER, None),
        ]
        write(tmp_path, f"{table}/2.jsonl", 1800 - number, later)
    dag_run = feed.run()
    assert any("EVT016" in problem and STOPPED in problem and "set_null" in problem for problem in dag_run.problems), (
        dag_run.problems
    )

    last = datetime(9999, 12, 31, 23, 59, 59, 999999)
    texts = {key: row["v"] for key, row in feed.copied_rows(TEXTS, "id").items()}
    assert texts == {1: "infinity", 2: "9999-12-31T23:59:59.999999", 3: "+10000-01-01T00:00:00"}
    nulls = {key: (row["v"], row["_cdc_text_v"]) for key, row in feed.copied_rows(NULLS, "id").items()}
    assert nulls == {1: (None, "infinity"), 2: (last, None), 3: (None, "+10000-01-01T00:00:00")}
    assert {key: row["v"] for key, row in feed.copied_rows(STOPPED, "id").items()} == {1: last}
    states = {table: row.state for table, row in feed.rows_of().items()}
    assert states[TEXTS] is states[NULLS] is TableState.REPLICATING and states[STOPPED] is TableState.BLOCKED

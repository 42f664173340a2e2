"""The watermark of a stream in channels: the lowest time that a channel has reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.extract import watermarked
from tests.spark.scripted_table import ScriptedTable

SCHEMA = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64)),), ("id",))


class Channels:
    def identity(self) -> dict[str, str]:
        return {}

    def channels(self, position: Mapping[str, str]) -> Collection[str]:
        return [name for name in position if "/" in name]


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> ScriptedTable:
    return ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]


def seal(
    table: ScriptedTable, hi: dict[str, str], reported: Mapping[str, datetime], source: Any = None, epoch: int = 1
) -> Manifest:
    """The next window, as extract seals it."""
    window = table.window = table.window + 1
    job = table.job(StepKind.EXTRACT, ())
    vars(job.resources).update(connector=source or Channels())
    before = table.log.manifest_sha256(window - 1)
    manifest = Manifest(table.log_id, window, epoch, {}, hi, before, "a", "2026-01-01T00:00:00Z", {})
    return table.log.seal(watermarked(job, manifest, reported))


def test_the_watermark_of_a_stream_is_that_of_its_last_channel(table: ScriptedTable) -> None:
    hi = {"t/0": "5", "t/1": "9", "cluster": "x"}
    assert seal(table, hi, {"t/0": at(7)}).watermark is None, "one has reported nothing yet"
    assert seal(table, hi, {"t/1": at(3)}).watermark == at(3).isoformat()
    assert seal(table, hi, {}).watermark == at(3).isoformat(), "nothing new was reported"
    assert seal(table, hi, {"t/1": at(9), "t/0": at(8)}).watermark == at(8).isoformat()
    assert seal(table, {**hi, "t/2": "0"}, {}).watermark is None, "a new partition has reported nothing yet"


def test_a_new_epoch_forgets_earlier_watermarks(table: ScriptedTable) -> None:
    hi = {"t/0": "5"}
    assert seal(table, hi, {"t/0": at(7)}).watermark == at(7).isoformat()
    assert seal(table, hi, {}, epoch=2).watermark is None


def test_a_source_that_reports_no_times_has_no_watermark(table: ScriptedTable) -> None:
    sealed = seal(table, {"slot": "0/1"}, {})
    assert (sealed.watermark, sealed.resolved) == (None, {})
    assert table.log.manifest(1) == replace(sealed)

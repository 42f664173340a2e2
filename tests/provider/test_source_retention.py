"""What runs measure of the log that the source keeps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_cdc_provider.connectors.source_features import RetainsLog
from airflow_cdc_provider.control import measure_retention
from airflow_cdc_provider.core.decisions.freshness import lagging_since
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.retained_log import RetainedLog, SourceRetention
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import FileSource, RunHarness

LOG = RetainedLog(3 << 20, free_bytes=1 << 20, end=9 << 20, keeps=timedelta(days=3))


class KeepingSource(FileSource):
    asked = 0

    def retained_log(self, position: Position | None) -> RetainedLog:
        self.asked += 1
        if (self.path.parent / "busy").exists():
            raise SourceUnavailable.of("SRC001", "the source does not answer")
        return LOG


@pytest.fixture
def keeping(harness: RunHarness) -> KeepingSource:
    harness.source = KeepingSource(harness.source.path)
    assert isinstance(harness.source, RetainsLog)
    return harness.source


def retention(harness: RunHarness) -> SourceRetention:
    return harness.state.positions.get("shop").retention


def test_a_run_measures_it_and_frequent_runs_do_not_ask_each_time(
    harness: RunHarness, keeping: KeepingSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(harness)
    first = retention(harness)
    assert first.log == LOG
    assert first.read_at == lagging_since(harness.state.tables("shop")["public.a"])
    asked = keeping.asked
    harness.run("r2")
    assert (keeping.asked, retention(harness)) == (asked, first)
    monkeypatch.setattr(measure_retention, "EVERY", timedelta())
    harness.run("r3")
    assert retention(harness).at > first.at


def test_a_source_that_does_not_answer_fails_no_run(harness: RunHarness, keeping: KeepingSource) -> None:
    (keeping.path.parent / "busy").touch()
    assert harness.run("r1").problems == ()
    assert retention(harness) == SourceRetention()


def test_status_and_metrics_name_when_the_log_runs_out(
    harness: RunHarness, keeping: KeepingSource, cdc: CommandLine
) -> None:
    replicated(harness)
    end = retention(harness).runs_out_at
    assert end is not None
    status = cdc("status", "shop")
    assert f"the source drops unread changes at {end:%Y-%m-%d %H:%M} UTC" in status.out
    shown = cdc("status", "shop", "--output", "json").body["retention"]["shop"]
    assert (shown["bytes"], shown["used"], shown["runs_out_at"]) == (3 << 20, 0.75, end.isoformat(timespec="seconds"))
    found = {one["metric"]: one["value"] for one in cdc("metrics", "shop", "--output", "json").body["metrics"]}
    assert found["cdc.source.kept"] == 3 << 20
    assert 3 * 86400 - 600 < found["cdc.source.retention_left"] <= 3 * 86400

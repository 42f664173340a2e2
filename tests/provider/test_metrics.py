"""Metrics of runs: each is declared, has its tags, and counts a run once."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from airflow_cdc_provider.control.close_window import CloseResult
from airflow_cdc_provider.control.run_metrics import current_gauges
from airflow_cdc_provider.core import metrics as m
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.metrics import METRICS, Metric, MetricKind, Sample
from airflow_cdc_provider.core.table.state_rows import AttemptRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.operators import metrics
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness


def values(samples: Iterable[Sample], metric: Metric) -> dict[str, float]:
    """The last tag → the value."""
    return {list(sample.tags.values())[-1]: sample.value for sample in samples if sample.metric is metric}


def by_table(samples: Iterable[Sample], metric: Metric) -> dict[str, float]:
    return {sample.tags["table"]: sample.value for sample in samples if sample.metric is metric}


def changed_run(harness: RunHarness) -> CloseResult:
    """The second run applies a change of ``public.a``."""
    replicated(harness)
    harness.source.change("public.a")
    return harness.run("r2")


def test_a_first_copy_and_the_changes_after_it_are_counted(harness: RunHarness) -> None:
    first = harness.run("r1")
    assert by_table(first.samples, m.COPIED) == {"public.a": 10, "public.b": 10}
    harness.source.change("public.a")
    second = harness.run("r2").samples
    assert by_table(second, m.COPIED) == {"public.a": 0, "public.b": 0}
    assert by_table(second, m.UPDATES) == {"public.a": 1, "public.b": 0}
    assert values(second, m.TABLES)[TableState.REPLICATING] == 2
    assert by_table(second, m.BACKLOG) == {"public.a": 0, "public.b": 0}
    assert values(second, m.RECORDS) == {"shop": 1}


def test_gauges_are_of_all_tables_also_of_those_that_the_source_no_longer_has(harness: RunHarness) -> None:
    harness.run("r1")
    harness.source.write(tables=harness.source.read()["tables"][:1])
    sent = list(harness.run("r2").samples)
    shown = list(current_gauges(harness.state, harness.replicator.definition, utc_now()))
    assert values(sent, m.TABLES) == values(shown, m.TABLES)
    assert values(sent, m.TABLES)[TableState.DROPPED] == 1
    assert by_table(sent, m.QUARANTINED) == {"public.a": 0, "public.b": 0}


def test_the_repeated_end_of_a_run_sends_gauges_only(harness: RunHarness) -> None:
    changed_run(harness)
    repeated = harness.close("r2").samples
    assert {sample.metric.kind for sample in repeated} == {MetricKind.GAUGE}


def test_a_failing_table_is_counted_by_its_code_and_its_log_is_a_backlog(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    plan = harness.open("r2").plan
    harness.extract(plan)
    lost = Problem("TGT010", "the lake does not answer")
    harness.write_result("r2", "merge", StepKind.MERGE, [TableResult("public.a", Outcome.FAILING, problem=lost)])
    failed = harness.close("r2").samples
    assert values(failed, m.ERRORS) == {"RUN002": 1} and by_table(failed, m.ERRORS) == {"public.a": 1}
    assert by_table(failed, m.BACKLOG)["public.a"] > 0 and by_table(failed, m.FAILING)["public.a"] == 1


def test_every_sample_has_exactly_the_tags_of_its_metric(harness: RunHarness) -> None:
    for sample in changed_run(harness).samples:
        assert set(sample.tags) == {"replicator", *sample.metric.tags}, sample
        assert sample.metric in METRICS


def test_samples_are_sent_through_airflow(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str, float, Mapping[str, str]]] = []
    for kind in ("incr", "gauge", "timing"):

        def note(name: str, value: Any, *, tags: Mapping[str, str], kind: str = kind) -> None:
            sent.append((kind, name, value, tags))

        monkeypatch.setattr(metrics.stats, kind, note)
    metrics.send([*changed_run(harness).samples, Sample(m.PHASE, 1500.0, {"replicator": "shop"})])
    assert ("gauge", "cdc.tables", 2, {"replicator": "shop", "state": "replicating"}) in sent
    assert ("timing", "cdc.phase", 1500.0, {"replicator": "shop"}) in sent
    assert all(value for kind, _, value, _ in sent if kind == "incr"), "counters of nothing are not sent"
    tags = {"replicator": "shop", "table": "public.a", "target": "default"}
    assert any(one == ("gauge", "cdc.window", 2, tags) for one in sent)


SENDER = """
from airflow_cdc_provider.core import metrics as m
from airflow_cdc_provider.operators.metrics import send

tags = {"replicator": "shop", "table": "public.orders", "target": "default"}
send([m.Sample(m.LAG, 12.5, tags), m.Sample(m.INSERTS, 7, tags), m.Sample(m.PHASE, 1500.0, {"replicator": "shop"})])
"""


@pytest.mark.nightly
def test_metrics_reach_an_opentelemetry_collector_with_their_tags(tmp_path: Path) -> None:
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__METRICS__OTEL_ON": "True"}
        command = [sys.executable, "-c", SENDER]
        done = subprocess.run(command, env={**os.environ, **home, **endpoint}, capture_output=True, text=True)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    names = (b"airflow.cdc.lag", b"airflow.cdc.dml.insert", b"airflow.cdc.phase", b"public.orders")
    assert all(name in b"".join(received) for name in names)


def test_phases_and_retries_are_of_a_table_where_it_is_known(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a", "public.b")
    plan = harness.open("r2").plan
    harness.extract(plan)
    merged = [TableResult(table, Outcome.UNCHANGED, phases={"read": 1.5}) for table in ("public.a", "public.b")]
    folder = harness.replicator.run("r2").folder("merge", 1)
    harness.write_result("r2", "merge", StepKind.MERGE, merged)
    folder.write_result(replace(folder.result(), phases={"start": 2.0}))
    for number, tables in enumerate((("public.a",), ("public.a", "public.b"), ("public.a",))):
        row = AttemptRow(f"m{number}", "shop", "merge", "r2", "merge", number + 1, "f", tables, "2026-05-01")
        harness.state.open_attempt(row)
    samples = harness.close("r2").samples
    shop, of_a, of_b, of_all = (
        {"replicator": "shop"},
        *(
            {"table": table, "target": target}
            for table, target in (("public.a", "default"), ("public.b", "default"), ("", ""))
        ),
    )
    merge = {"step": "merge"}
    assert [(one.value, one.tags) for one in samples if one.metric is m.PHASE and one.tags["step"] == "merge"] == [
        (2000, shop | of_all | merge | {"phase": "start"}),
        (1500, shop | of_a | merge | {"phase": "read"}),
        (1500, shop | of_b | merge | {"phase": "read"}),
    ]
    found = [(one.value, one.tags) for one in samples if one.metric is m.RETRIES]
    assert found == [(1, shop | of_all), (1, shop | of_a)], "the first attempt is no retry"


def test_a_changed_column_is_a_ddl(harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.spark(harness.open("r2"))
    row = harness.state.tables("shop")["public.a"]
    assert row.control is not None and row.control.schema is not None
    fewer = replace(row.control.schema, columns=row.control.schema.columns[:-1])
    earlier = replace(row, control=replace(row.control, schema=fewer))
    harness.state.change_tables("shop", lambda _: [earlier])
    assert by_table(harness.close("r2").samples, m.DDL) == {"public.a": 1}


def test_the_command_shows_gauges_without_a_run(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    body = cdc("metrics", "shop", "--json").body["metrics"]
    found = {one["metric"]: one["value"] for one in body if one["tags"].get("table") == "public.a"}
    assert found["cdc.rows"] == 10 and found["cdc.late"] == 0 and found["cdc.lag"] >= 0
    assert "cdc.tables" in cdc("metrics").out


def test_the_audit_log_is_shown(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert cdc("pause", "shop", "--table", "public.a").code == 0
    newest, *_ = cdc("audit", "shop", "--json").body["entries"]
    assert newest["action"] == "fence" and newest["detail"]["table"] == "public.a"
    assert "fence" in cdc("audit", "shop", "--limit", "1").out
    assert cdc("audit", "shop", "--limit", "-1").code == 64
    missing = cdc("audit", "nothing")
    assert missing.code and "CLI001" in missing.err

"""The Grafana dashboard and the alerts of the guide: their queries find what runs send, in a real Prometheus."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.metrics import METRICS
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from tests.waiting import until

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = DOCS / "grafana" / "replicators.json"
RECEIVER = "web.enable-otlp-receiver"
ALERT = re.compile(r"^\| `([^`]*airflow_cdc_[^`]*)`", re.MULTILINE)
SENDER = """
import time
from airflow_cdc_provider.core.metrics import METRICS, Sample
from airflow_cdc_provider.operators.metrics import send

for _ in range(2):
    for metric in METRICS:
        send([Sample(metric, 5, {"replicator": "shop", **dict.fromkeys(metric.tags, "blocked")})])
    time.sleep(1)
"""
"""Two exports: rates need two values. Each value is one that alerts."""


def queries() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def alerts() -> list[str]:
    return ALERT.findall((DOCS / "guides" / "monitoring.md").read_text())


def test_every_query_reads_declared_metrics_with_their_tags() -> None:
    """In the names that Prometheus gives to metrics of OpenTelemetry."""
    names = {metric.name.replace(".", "_"): metric for metric in METRICS}
    assert len(queries()) > 6 and len(alerts()) > 4
    for query in (*queries(), *alerts()):
        found = re.findall(r"airflow_(cdc_[a-z_]+)", query)
        assert found, query
        for name in found:
            base = next(base for base in (name, name.removesuffix("_total")) if base in names)
            tags = {"replicator", *names[base].tags}
            used = re.findall(r"([a-z]+)\s*=~?\s*\"", query)
            used += re.findall(r"([a-z]+)", ",".join(re.findall(r"by \(([^)]*)\)", query)))
            assert set(used) <= tags, query


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Its address. Without a Prometheus that receives OpenTelemetry, the test is skipped."""
    program = shutil.which("prometheus")
    if program is None or RECEIVER not in printed(program, "--help"):
        pytest.skip("no Prometheus 3 that receives OpenTelemetry is installed")
    (folder / "prometheus.yml").write_text("")
    (port,) = free_ports(1)
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", f"--{RECEIVER}", "--enable-feature=native-histograms"]
    with subprocess.Popen(command) as server:
        try:
            until(lambda: is_open(port), "Prometheus listens")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def printed(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def ask(server: str, query: str) -> list[dict[str, Any]]:
    """The series that it finds."""
    with urllib.request.urlopen(f"{server}/api/v1/query?{urllib.parse.urlencode({'query': query})}") as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found


@pytest.mark.nightly
def test_every_query_finds_what_runs_send(tmp_path: Path) -> None:
    with prometheus(tmp_path) as server:
        sender = {
            "AIRFLOW_HOME": f"{tmp_path}/airflow",
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{server}/api/v1/otlp",
            "OTEL_METRIC_EXPORT_INTERVAL": "300",
        }
        subprocess.run([sys.executable, "-c", SENDER], env={**os.environ, **sender}, check=True)
        until(lambda: ask(server, "airflow_cdc_tables"), "the metrics have arrived")
        found = {query: ask(server, query.replace("$replicator", "shop")) for query in (*queries(), *alerts())}
    silent = {query for query, series in found.items() if not series}
    assert silent == {query for query in found if query.startswith("absent_over_time")}

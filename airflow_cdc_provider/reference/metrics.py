"""The page of the metrics."""

from __future__ import annotations

from airflow_cdc_provider.core.metrics import METRICS, Metric

PAGE = """# Metrics

This page is generated from the code. Runs send these metrics through Airflow; [Monitoring](../guides/monitoring.md)
shows how to receive them. Every metric has the tag `replicator`.

| metric | kind | unit | more tags | meaning |
|---|---|---|---|---|
{rows}

`table` is a source table, `target` the name of a target (`default`, unless the YAML has `targets`). Gauges are sent at
the end of each run. Counters count a run once; what a worker has not sent when it dies is lost, while the gauges of the
next run are complete.
"""


def page() -> str:
    return PAGE.format(rows="\n".join(map(_row, METRICS)))


def _row(metric: Metric) -> str:
    tags = ", ".join(f"`{tag}`" for tag in metric.tags)
    return f"| `{metric.name}` | {metric.kind} | {metric.unit} | {tags} | {metric.meaning} |"

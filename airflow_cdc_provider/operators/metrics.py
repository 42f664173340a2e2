"""Sends metrics through Airflow, to where its configuration says: StatsD or OpenTelemetry, or nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from airflow.sdk.observability import stats

from airflow_cdc_provider.core.metrics import MetricKind, Sample


def send(samples: Iterable[Sample]) -> None:
    for sample in samples:
        name, tags = sample.metric.name, dict(sample.tags)
        match sample.metric.kind:
            case MetricKind.COUNTER if sample.value:
                stats.incr(name, int(sample.value), tags=tags)
            case MetricKind.GAUGE:
                stats.gauge(name, sample.value, tags=tags)
            case MetricKind.TIMER:
                stats.timing(name, sample.value, tags=tags)

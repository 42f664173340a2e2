"""The YAML keys of a Kafka source."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.connectors.transports.messages.options import FeedOptions
from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(FeedOptions):
    topics: tuple[str, ...] = doc("Topics to read; patterns with `*` and `?` are allowed.", non_empty=True)

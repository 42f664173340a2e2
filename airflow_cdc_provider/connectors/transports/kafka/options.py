"""The YAML keys of a Kafka source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.transports.messages.options import FeedOptions
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import doc


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(FeedOptions):
    topics: tuple[str, ...] = doc("Topics to read; patterns with `*` and `?` are allowed.", non_empty=True)


def read_options(options: Mapping[str, Any]) -> KafkaOptions:
    return from_plain(KafkaOptions, dict(options))

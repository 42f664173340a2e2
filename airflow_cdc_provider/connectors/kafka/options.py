"""The keys of a source that reads topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.feeds.options import FeedOptions
from airflow_cdc_provider.core.definition import doc
from airflow_cdc_provider.core.plain import from_plain


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(FeedOptions):
    topics: tuple[str, ...] = doc("Topics to read; patterns with `*` and `?` may stand for several.", filled=True)


def read_options(options: Mapping[str, Any]) -> KafkaOptions:
    return from_plain(KafkaOptions, dict(options))

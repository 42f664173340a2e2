"""The keys of a source that reads YDB changefeeds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.spec.fields import doc


class FeedMode(StrEnum):
    """``MODE`` of a feed. UNKNOWN: inferred from each record as far as possible."""

    UNKNOWN = ""
    KEYS_ONLY = "KEYS_ONLY"
    UPDATES = "UPDATES"
    NEW_IMAGE = "NEW_IMAGE"
    OLD_IMAGE = "OLD_IMAGE"
    NEW_AND_OLD_IMAGES = "NEW_AND_OLD_IMAGES"


@dataclass(frozen=True)
class YdbOptions:
    mode: FeedMode = doc("The feed's `MODE`.", FeedMode.UNKNOWN)
    table: str = doc("Table of the feed; by default the path of the topic without its last part.", "")

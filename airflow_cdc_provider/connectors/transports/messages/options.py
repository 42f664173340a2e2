"""The YAML keys of every transport of messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    keeps_texts: ClassVar[bool] = True
    holds_copies: ClassVar[bool] = True

    format: str = doc("Format of the messages; the keys of the format are siblings of this key.", choices="formats")
    schemas: str = doc(
        "Absolute path of a JSON file with the schemas of tables whose messages have none; read on the worker.", ""
    )
    max_silence: timedelta | None = doc(
        "The writer sends a message, or a heartbeat, at least this often. In a longer silence the copies age from its "
        "last message on. Without this key a silent feed is one without changes.",
        None,
    )

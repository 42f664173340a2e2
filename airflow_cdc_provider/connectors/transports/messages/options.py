"""The keys that every transport of messages takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import doc


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    keeps_texts: ClassVar[bool] = True

    format: str = doc("What the messages are; the keys of the format are written beside it.", choices="formats")
    schemas: str = doc(
        "Absolute path of a JSON file with the schemas of tables whose messages tell none; read on the worker.", ""
    )

"""The YAML keys of a files source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from airflow_cdc_provider.connectors.transports.messages.options import FeedOptions
from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True, kw_only=True)
class FilesOptions(FeedOptions):
    needs_connection: ClassVar[bool] = False

    location: str = doc("Folder or URL that contains the files, at any depth.", form="location")
    stable_for: timedelta = doc("How long a file must be unchanged before it is read.", timedelta(minutes=1))
    lateness: timedelta = doc("How much older than the newest file read so far a new file may be.", timedelta(hours=1))

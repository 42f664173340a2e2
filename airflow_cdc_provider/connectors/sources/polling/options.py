"""The YAML keys of every source of timestamp windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True, kw_only=True)
class PollingOptions:
    """A change is found if it is committed at most ``commit_latency + timestamp_latency`` after its timestamp."""

    has_each_change: ClassVar[bool] = False

    commit_latency: timedelta = doc(
        "How old a timestamp must be before its row is read: the time in which most changes are committed.",
        timedelta(seconds=300),
    )
    timestamp_latency: timedelta = doc(
        "How far each interval overlaps the previous one, for changes that are committed later. Rows in the overlap "
        "are read again.",
        timedelta(minutes=10),
    )
    page_rows: int = doc("Maximum rows of one query.", 20_000, minimum=100, maximum=1_000_000)
    key_audit: timedelta | None = doc(
        "How often the keys of source and target are compared to find deleted rows; never by default.", None
    )
    timestamp_columns: dict[str, str] = doc(
        "Table -> its column with the time of the last change, if it is not the default one.", dict, keys="names"
    )

"""The YAML keys of every source of timestamp windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from airflow_cdc_provider.core.spec.definition import doc


@dataclass(frozen=True, kw_only=True)
class PollingOptions:
    """A change is found if it is committed within ``commit_latency`` and ``timestamp_latency`` of its timestamp."""

    commit_latency: timedelta = doc(
        "How old a timestamp must be before its row is read: the time most changes take to be committed.",
        timedelta(seconds=300),
    )
    timestamp_latency: timedelta = doc(
        "How far each interval reaches back into the one before it, for changes that took longer. What lies there is "
        "read again.",
        timedelta(minutes=10),
    )
    page_rows: int = doc("Most rows of one query.", 20_000, minimum=100, maximum=1_000_000)
    key_audit: timedelta | None = doc(
        "How often the keys of source and target are compared, so that deleted rows are found; never by default.", None
    )
    timestamp_columns: dict[str, str] = field(
        default_factory=dict,
        metadata={"doc": "Table -> the column that tells when a row was changed last, where it is another one."},
    )

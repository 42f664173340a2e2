"""The backfills that the rows of Datastream's files belong to. Pure.

All rows of a backfill have the time at which it was started, in `source_timestamp` and in the path of their file.
"""

from __future__ import annotations

from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot

MINUTE_MS = 60_000
"""As exact as the paths of files are."""


class Backfills:
    """Those of the rows decoded so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], SourceSnapshot] = {}

    def add(self, table: str, started_ms: int) -> None:
        minute = started_ms // MINUTE_MS
        known = self._found.get((table, minute))
        if known is None or started_ms < known.at_ms:
            self._found[table, minute] = SourceSnapshot(table, table, f"backfill {minute}", started_ms, backfill=True)

    def observe(self, message: Message) -> None:
        """Nothing: the decoder adds each row that it has decoded."""

    def observe_columns(self, columns: MessageColumns) -> None:
        """As ``observe``."""

    @property
    def snapshots(self) -> tuple[SourceSnapshot, ...]:
        return tuple(self._found.values())

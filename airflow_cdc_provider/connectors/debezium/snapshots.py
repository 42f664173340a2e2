"""Which full snapshots the messages of Debezium belong to, from their source blocks alone. Pure.

A blocking snapshot that an operator asked for has the markers of the connector's own. PostgreSQL tells them apart: the
connector still has the end of the transaction before, which it has not when it starts without offsets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.debezium.places import INITIAL, PLACES
from airflow_cdc_provider.connectors.formats import exact_json
from airflow_cdc_provider.connectors.formats.message import Message
from airflow_cdc_provider.connectors.formats.unreadable import Unreadable
from airflow_cdc_provider.core.snapshots import CHANGES, Snapshot, joined

SOURCE = b'"source":'
SNAPSHOT = re.compile(rb'"snapshot"\s*:\s*(?:"([a-z_]+)"|(true|false))')
LAST = "last"
MOST_REMEMBERED = 1024
UNSURE = ("", "")
"""The place of a message that says nothing of snapshots."""


class Snapshots:
    """Those of the messages it was shown. ``blocking``: full snapshots behind changes are an operator's."""

    def __init__(self, blocking: bool) -> None:
        self._blocking = blocking
        self._places: dict[bytes, tuple[str, str]] = {}
        self._found: dict[tuple[str, str], Snapshot] = {}

    @property
    def found(self) -> tuple[Snapshot, ...]:
        return joined(self._found.values())

    def show(self, message: Message) -> None:
        at = message.value.rfind(SOURCE) if message.value else -1
        if message.value is None or at < 0:
            return
        end = message.value.find(b"}", at) + 1
        block = message.value[at + len(SOURCE) : end]
        marker = SNAPSHOT.search(block)
        if marker is None:
            return
        is_row = (marker[1] or marker[2]).decode() in INITIAL or marker[2] == b"true"
        streamed = self._found.get((message.topic, CHANGES))
        if not is_row and streamed is not None and streamed.at_ms <= message.at_ms:
            return
        source, place = self._place_of(block, is_row)
        if not source or (is_row and not place):
            return
        known = self._found.get((message.topic, place))
        ended = marker[1] == LAST.encode()
        if known is None or (ended and not known.ended) or message.at_ms < known.at_ms:
            one = Snapshot(source, message.topic, place, message.at_ms, ended, is_row and b'"postgresql"' in block)
            self._found[message.topic, place] = joined([one, *([known] if known else [])])[0]

    def _place_of(self, block: bytes, is_row: bool) -> tuple[str, str]:
        if block not in self._places:
            if len(self._places) >= MOST_REMEMBERED:
                self._places.clear()
            self._places[block] = self._read(block, is_row)
        return self._places[block]

    def _read(self, block: bytes, is_row: bool) -> tuple[str, str]:
        try:
            source = exact_json.parse_text(exact_json.text_of(block.strip()))
            if not isinstance(source, dict) or source.get("connector") not in PLACES:
                return UNSURE
            if source.get("snapshot") == "incremental" or not (source.get("table") or source.get("collection")):
                return UNSURE
            name = str(source.get("name") or "")
            return (name, self._snapshot(source)) if is_row else (name, CHANGES)
        except Unreadable:  # the decoder says what is wrong with the message
            return UNSURE

    def _snapshot(self, source: Mapping[str, Any]) -> str:
        """Empty where it is an operator's."""
        connector = source["connector"]
        if connector == "mongodb":
            return "" if self._blocking else f"{source.get('ts_ms')}:{source.get('ord')}"
        place, _ = PLACES[connector]
        at, ordinal = place(source, None, "initial", 0, False)
        if connector == "postgresql":
            return f"{at}{ordinal}" if not at.strip("0") else ""
        return "" if self._blocking else f"{at}{ordinal}"

"""Which full snapshots the messages of Debezium belong to, from their source blocks alone. Pure.

A blocking snapshot that an operator asked for has the markers of the connector's own. PostgreSQL tells them apart: the
connector still has the end of the transaction before, which it has not when it starts without offsets.

A topic tells when each message was written. In files the connector's own clock does, and the table stands for the
topic: one file may hold several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.debezium.envelope import table_of
from airflow_cdc_provider.connectors.decoders.debezium.positions import INITIAL, PLACES
from airflow_cdc_provider.core.log.snapshots import CHANGES, SourceSnapshot, merge_snapshots

SOURCE = b'"source":'
SNAPSHOT = re.compile(rb'"snapshot"\s*:\s*(?:"([a-z_]+)"|(true|false))')
TABLE = re.compile(rb'"(?:name|db|schema|table|collection)"\s*:\s*"[^"]*"')
WRITTEN = re.compile(rb'"ts_ms"\s*:\s*(\d+)')
LAST = "last"
MOST_REMEMBERED = 1024


class _Place(NamedTuple):
    """Of a message in a snapshot; without source where it says nothing of snapshots."""

    source: str = ""
    table: str = ""
    place: str = ""


UNSURE = _Place()


class Snapshots:
    """Those of the messages it was shown. ``blocking``: full snapshots behind changes are an operator's."""

    def __init__(self, blocking: bool) -> None:
        self._blocking = blocking
        self._places: dict[bytes, _Place] = {}
        self._found: dict[tuple[str | bytes, str], SourceSnapshot] = {}

    @property
    def found(self) -> tuple[SourceSnapshot, ...]:
        return merge_snapshots(self._found.values())

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
        topic, at_ms = (message.topic, message.at_ms) if message.at_ms else _in_a_file(message.value, block, end)
        streamed = self._found.get((topic, CHANGES))
        if not is_row and streamed is not None and streamed.at_ms <= at_ms:
            return
        source, table, place = self._place_of(block, is_row)
        if not source or (is_row and not place):
            return
        known = self._found.get((topic, place))
        ended = marker[1] == LAST.encode()
        if known is None or (ended and not known.ended) or at_ms < known.at_ms:
            name = topic if isinstance(topic, str) else table
            one = SourceSnapshot(source, name, place, at_ms, ended, is_row and b'"postgresql"' in block)
            self._found[topic, place] = merge_snapshots([one, *([known] if known else [])])[0]

    def _place_of(self, block: bytes, is_row: bool) -> _Place:
        if block not in self._places:
            if len(self._places) >= MOST_REMEMBERED:
                self._places.clear()
            self._places[block] = self._read(block, is_row)
        return self._places[block]

    def _read(self, block: bytes, is_row: bool) -> _Place:
        try:
            source = exact_json.parse_text(exact_json.text_of(block.strip()))
            if not isinstance(source, dict) or source.get("connector") not in PLACES:
                return UNSURE
            if source.get("snapshot") == "incremental" or not (source.get("table") or source.get("collection")):
                return UNSURE
            table = table_of(source["connector"], source)
            return _Place(str(source.get("name") or ""), table, self._snapshot(source) if is_row else CHANGES)
        except DecodeError:  # the decoder says what is wrong with the message
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


def _in_a_file(value: bytes, block: bytes, end: int) -> tuple[bytes, int]:
    """What the table is called in the source block, and when the connector wrote the message; 0 where it does not say
    so."""
    written = WRITTEN.search(value, end)
    return b" ".join(TABLE.findall(block)), int(written[1]) if written else 0

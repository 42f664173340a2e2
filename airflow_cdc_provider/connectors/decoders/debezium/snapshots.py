"""Detects the full snapshots that Debezium messages belong to, from their source blocks. Pure.

A blocking snapshot, started by an operator, has the same markers as a snapshot that the connector starts itself. For
PostgreSQL they can be distinguished: a connector that starts without offsets lacks the end of the previous transaction.

The time of a message is that of its topic. In files it is that of the connector, and the table is used instead of the
topic, since a file may contain several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.connectors.decoders.debezium.positions import INITIAL_MARKERS, POSITIONS
from airflow_cdc_provider.connectors.decoders.debezium.source_block import table_of
from airflow_cdc_provider.core.log.snapshots import CHANGES, SourceSnapshot, merge_snapshots

SOURCE = b'"source":'
SNAPSHOT = re.compile(rb'"snapshot"\s*:\s*(?:"([a-z_]+)"|(true|false))')
TABLE = re.compile(rb'"(?:name|db|schema|table|collection)"\s*:\s*"[^"]*"')
WRITTEN = re.compile(rb'"ts_ms"\s*:\s*(\d+)')
LAST, INCREMENTAL = "last", "incremental"
MAX_CACHED = 1024


class _BlockSnapshot(NamedTuple):
    """The snapshot that a source block belongs to. ``source`` is empty if the block has no snapshot information.
    ``snapshot``: the position of the snapshot, ``CHANGES``, or empty for a snapshot of an operator."""

    source: str = ""
    table: str = ""
    snapshot: str = ""


UNKNOWN = _BlockSnapshot()


class Snapshots:
    """The snapshots of observed messages. ``blocking``: full snapshots after changes are started by operators."""

    def __init__(self, blocking: bool) -> None:
        self._blocking = blocking
        self._blocks: dict[bytes, _BlockSnapshot] = {}
        self._snapshots: dict[tuple[str | bytes, str], SourceSnapshot] = {}

    @property
    def snapshots(self) -> tuple[SourceSnapshot, ...]:
        return merge_snapshots(self._snapshots.values())

    def observe(self, message: Message) -> None:
        at = message.value.rfind(SOURCE) if message.value else -1
        if message.value is None or at < 0:
            return
        end = message.value.find(b"}", at) + 1
        block = message.value[at + len(SOURCE) : end]
        marker = SNAPSHOT.search(block)
        if marker is None:
            return
        is_row = (marker[1] or marker[2]).decode() in INITIAL_MARKERS or marker[2] == b"true"
        topic, at_ms = (message.topic, message.at_ms) if message.at_ms else _topic_of_file(message.value, block, end)
        streamed = self._snapshots.get((topic, CHANGES))
        if not is_row and streamed is not None and streamed.at_ms <= at_ms:
            return
        source, table, snapshot = self._of_block(block, is_row)
        if not source or (is_row and not snapshot):
            return
        known = self._snapshots.get((topic, snapshot))
        ended = marker[1] == LAST.encode()
        if known is None or (ended and not known.ended) or at_ms < known.at_ms:
            name = topic if isinstance(topic, str) else table
            new = SourceSnapshot(source, name, snapshot, at_ms, ended, is_row and b'"postgresql"' in block)
            self._snapshots[topic, snapshot] = merge_snapshots([new, *([known] if known else [])])[0]

    def observe_columns(self, columns: MessageColumns) -> None:
        rows = _first_messages(columns)
        for message in (columns if rows is None else columns.take(rows)).json_messages():
            self.observe(message)

    def _of_block(self, block: bytes, is_row: bool) -> _BlockSnapshot:
        if block not in self._blocks:
            if len(self._blocks) >= MAX_CACHED:
                self._blocks.clear()
            self._blocks[block] = self._read(block, is_row)
        return self._blocks[block]

    def _read(self, block: bytes, is_row: bool) -> _BlockSnapshot:
        try:
            source = exact_json.parse_text(exact_json.text_of(block.strip()))
            if not isinstance(source, dict) or source.get("connector") not in POSITIONS:
                return UNKNOWN
            if source.get("snapshot") == INCREMENTAL or not (source.get("table") or source.get("collection")):
                return UNKNOWN
            table = table_of(source["connector"], source)
            return _BlockSnapshot(str(source.get("name") or ""), table, self._snapshot(source) if is_row else CHANGES)
        except DecodeError:  # the decoder reports it
            return UNKNOWN

    def _snapshot(self, source: Mapping[str, Any]) -> str:
        """The position of the snapshot; empty if an operator started it."""
        connector = source["connector"]
        if connector == "mongodb":
            return "" if self._blocking else f"{source.get('ts_ms')}:{source.get('ord')}"
        read_position, _ = POSITIONS[connector]
        at, ordinal, _ = read_position(source, None, "initial", 0, False)
        if connector == "postgresql":
            return f"{at}{ordinal}" if not at.strip("0") else ""
        if connector == "mysql":  # the ordinal of all rows of a snapshot is 0
            ordinal = ""
        return "" if self._blocking else f"{at}{ordinal}"


def _topic_of_file(value: bytes, block: bytes, end: int) -> tuple[bytes, int]:
    """The table as named in the source block, and the time at which the connector wrote the message; 0 if unknown."""
    written = WRITTEN.search(value, end)
    return b" ".join(TABLE.findall(block)), int(written[1]) if written else 0


def _first_messages(columns: MessageColumns) -> list[int] | None:
    """The rows of the first change, and of the first message of a snapshot with each source block: the others cannot
    change the result. None if they cannot be distinguished."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from airflow_cdc_provider.connectors.decoders.common.arrow_json import json_texts

    times = [message.at_ms for message in columns.messages]
    blocks = columns.values.field("source") if columns.values.type.get_field_index("source") >= 0 else None
    if blocks is None or blocks.type.get_field_index("snapshot") < 0 or not all(times):
        return None
    markers = pc.struct_field(blocks, "snapshot")
    if not pa.types.is_string(markers.type):
        return None
    changes, copied, first = [], [], dict[str, int]()
    for row, marker in enumerate(markers.to_pylist()):
        if marker in INITIAL_MARKERS:
            copied.append(row)
        elif marker is not None and marker != INCREMENTAL:
            changes.append(row)
    for row, block in zip(copied, json_texts(blocks.take(pa.array(copied, pa.int64()))).to_pylist(), strict=True):
        first[block] = min(first.get(block, row), row, key=times.__getitem__)
    return sorted([*first.values(), *([min(changes, key=times.__getitem__)] if changes else [])])

"""DEBEZIUM_JSON of a changefeed, in its old and new forms. Pure.

The format has neither schema nor table name. The source block has a virtual timestamp; the message key has the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    UNKNOWN_OPERATION,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import OF_FORMATS, not_supported, refusal
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.inferred_rows import guess_images, mark_guessed
from airflow_cdc_provider.connectors.decoders.ydb.positions import change_timestamp
from airflow_cdc_provider.connectors.decoders.ydb.records import ALL_COLUMNS, RowChange
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation

OPERATIONS = frozenset("cudrs")
ROW_MEMBERS = frozenset({"before", "after"})
Row = Mapping[str, Any]


class DebeziumJson:
    def __init__(self, settings: DecoderSettings, tables: FeedTables) -> None:
        self._settings = settings
        self._tables = tables

    def decode(self, message: Message, value: Row, table: str) -> list[Item]:
        """Raises DecodeError if not even the position can be decoded."""
        payload = as_row(value["payload"], "the payload")
        if "source" not in payload:
            raise refusal(value, "ydb", "a payload without a source block")
        source = as_row(payload["source"], "the source block")
        _require_feed(source.get("connector"))
        ts = payload.get("ts")
        if ts is None and source.get("step") is not None:
            ts = [source["step"], source.get("txId")]
        metadata = {name: member for name, member in value.items() if name != "payload"}
        metadata |= {name: member for name, member in payload.items() if name not in ROW_MEMBERS}
        change = RowChange(self._settings.epoch, message, table, change_timestamp(ts, message), metadata)
        images, op = None, ""
        row: dict[str, Any] = {}
        try:
            letter = payload.get("op")
            if not isinstance(letter, str) or letter not in OPERATIONS:
                raise DecodeError(UNKNOWN_OPERATION, "op is not a known operation")
            op = Operation.DELETE if letter == "d" else Operation.UPSERT
            known = self._tables.has_schema(table)
            images = self._tables.images(table) if known else _guess_images(table, message, payload)
            row = _key_row(message, payload, images)
            record = _row(letter, payload, row, images, change, source.get("snapshot") is True)
            return [*self._tables.announce(images.schema), record if known else mark_guessed(record)]
        except DecodeError as error:
            after = payload.get("after")
            return [change.unreadable(str(error), op, images, {**row, **(after if isinstance(after, dict) else {})})]


def _require_feed(connector: Any) -> None:
    """Envelopes of other connectors have no virtual timestamp."""
    if isinstance(connector, str) and connector not in OF_FORMATS:
        raise not_supported("connector", connector, OF_FORMATS, "Debezium's own connectors need `format: debezium`")


def _guess_images(table: str, message: Message, payload: Row) -> RowImages:
    key = exact_json.parse(message.key) if message.key is not None else None
    members = key.get("payload") if isinstance(key, dict) else None
    rows = (payload.get(name) for name in ("before", "after"))
    return guess_images(table, members if isinstance(members, dict) else {}, *rows)


def _key_row(message: Message, payload: Row, images: RowImages) -> dict[str, Any]:
    """From the message key; without one, from an image."""
    if message.key is not None:
        key = as_row(exact_json.parse(message.key), "the key")
        row = as_row(key.get("payload"), "the payload of the key")
    else:
        row = next((payload[name] for name in ("after", "before") if isinstance(payload.get(name), dict)), {})
    missing = [name for name in images.schema.key if name not in row]
    if missing:
        raise DecodeError(NO_KEY, f"the key column {missing[0]} is not in the message")
    return {name: row[name] for name in images.schema.key}


def _row(letter: str, payload: Row, key_row: Row, images: RowImages, change: RowChange, scanned: bool) -> ChangeRecord:
    """``s`` is a reset, whose result is in the images. Without an after image, the row must be fetched."""
    key = images.key(key_row)
    before, after = _image("before", payload, key_row, images), _image("after", payload, key_row, images)
    if letter == "d":
        if after is not None:
            raise DecodeError(CONTRADICTION, "a delete with an after image")
        return change.record(Operation.DELETE, images, key, before)
    if letter == "r" or scanned:
        if after is None:
            raise DecodeError(CONTRADICTION, "a read without an after image")
        return change.record(Operation.READ, images, key, None, after, snapshot="scan")
    if after is None:
        return change.record(Operation.UPSERT, images, key, before, images.image(key_row), ALL_COLUMNS)
    if letter == "c":
        return change.record(Operation.INSERT, images, key, None, after)
    return change.record(Operation.UPDATE if before else Operation.UPSERT, images, key, before, after)


def _image(name: str, payload: Row, key_row: Row, images: RowImages) -> RowImage | None:
    if payload.get(name) is None:
        return None
    return images.image({**key_row, **as_row(payload[name], name)})

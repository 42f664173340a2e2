"""DEBEZIUM_JSON of a changefeed, old and new. Pure.

It has neither schema nor table name, its source block a virtual timestamp; the key stands in the message's key.
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
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.inferred_rows import guessed, marked
from airflow_cdc_provider.connectors.decoders.ydb.positions import moment_of
from airflow_cdc_provider.connectors.decoders.ydb.records import EVERYTHING, Change
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation

OPERATIONS = frozenset("cudrs")
ROW_MEMBERS = frozenset({"before", "after"})
Row = Mapping[str, Any]


class DebeziumForm:
    def __init__(self, setting: DecoderSettings, tables: FeedTables) -> None:
        self._setting = setting
        self._tables = tables

    def decode(self, message: Message, value: Row, table: str) -> list[Item]:
        """Raises DecodeError where not even the place is clear."""
        payload = as_row(value["payload"], "the payload")
        source = as_row(payload.get("source"), "the source block")
        told = payload.get("ts")
        if told is None and source.get("step") is not None:
            told = [source["step"], source.get("txId")]
        facts = {name: one for name, one in value.items() if name != "payload"}
        facts |= {name: one for name, one in payload.items() if name not in ROW_MEMBERS}
        change = Change(self._setting.epoch, message, table, moment_of(told), facts)
        images, op = None, ""
        row: dict[str, Any] = {}
        try:
            letter = payload.get("op")
            if not isinstance(letter, str) or letter not in OPERATIONS:
                raise DecodeError(UNKNOWN_OPERATION, "op is none that we know")
            op = Operation.DELETE if letter == "d" else Operation.UPSERT
            known = self._tables.knows(table)
            images = self._tables.images(table) if known else _guessed(table, message, payload)
            row = _key_row(message, payload, images)
            record = _row(letter, payload, row, images, change, source.get("snapshot") is True)
            return [*self._tables.announced(images.schema), record if known else marked(record)]
        except DecodeError as error:
            after = payload.get("after")
            return [change.unreadable(str(error), op, images, {**row, **(after if isinstance(after, dict) else {})})]


def _guessed(table: str, message: Message, payload: Row) -> RowImages:
    key = exact_json.parse(message.key) if message.key is not None else None
    told = key.get("payload") if isinstance(key, dict) else None
    return guessed(table, told if isinstance(told, dict) else {}, *(payload.get(name) for name in ("before", "after")))


def _key_row(message: Message, payload: Row, images: RowImages) -> dict[str, Any]:
    """From the key of the message; without one, from an image."""
    if message.key is not None:
        told = as_row(exact_json.parse(message.key), "the key")
        row = as_row(told.get("payload"), "the key's payload")
    else:
        row = next((payload[name] for name in ("after", "before") if isinstance(payload.get(name), dict)), {})
    missing = [name for name in images.schema.key if name not in row]
    if missing:
        raise DecodeError(NO_KEY, f"the key column {missing[0]} is not in the message")
    return {name: row[name] for name in images.schema.key}


def _row(letter: str, payload: Row, key_row: Row, images: RowImages, change: Change, scanned: bool) -> ChangeRecord:
    """``s`` is a reset; where there are images, they say what it led to. Without any, the row must be fetched."""
    key = images.key(key_row)
    then, now = _image("before", payload, key_row, images), _image("after", payload, key_row, images)
    if letter == "d":
        if now is not None:
            raise DecodeError(CONTRADICTION, "a delete with a row after it")
        return change.record(Operation.DELETE, images, key, then)
    if letter == "r" or scanned:
        if now is None:
            raise DecodeError(CONTRADICTION, "a row that was read, without the row")
        return change.record(Operation.READ, images, key, None, now, snapshot="scan")
    if now is None:
        return change.record(Operation.UPSERT, images, key, then, images.image(key_row), EVERYTHING)
    if letter == "c":
        return change.record(Operation.INSERT, images, key, None, now)
    return change.record(Operation.UPDATE if then else Operation.UPSERT, images, key, then, now)


def _image(name: str, payload: Row, key_row: Row, images: RowImages) -> RowImage | None:
    if payload.get(name) is None:
        return None
    return images.image({**key_row, **as_row(payload[name], name)})

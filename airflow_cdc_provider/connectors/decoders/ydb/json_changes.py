"""Format JSON of a changefeed: row changes, barriers, schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    NO_ORDER,
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import refusal
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.inferred_rows import guess_images, mark_guessed, number_key
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode, YdbOptions
from airflow_cdc_provider.connectors.decoders.ydb.positions import (
    DELETED,
    VirtualTimestamp,
    change_timestamp,
    virtual_timestamp,
)
from airflow_cdc_provider.connectors.decoders.ydb.records import ALL_COLUMNS, RowChange
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables, feed_schema
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix

KINDS = ("update", "reset", "erase")
IMAGES = ("newImage", "oldImage")
ROW_MEMBERS = frozenset({"key", *KINDS, *IMAGES})
MEMBERS = frozenset({"key", *KINDS, "resolved", "tableChanges"})
NO_TIME = VirtualTimestamp()
Row = Mapping[str, Any]


class YdbJson:
    def __init__(self, settings: DecoderSettings, options: YdbOptions, tables: FeedTables) -> None:
        self._settings = settings
        self._mode = options.mode
        self._tables = tables

    def decode(self, message: Message, value: Row, table: str) -> list[Item]:
        """Raises DecodeError if not even the position can be decoded."""
        if MEMBERS.isdisjoint(value) or "source" in value:
            raise refusal(value, "ydb", "none of update, reset and erase")
        if "resolved" in value:
            return [self._barrier(message, value, table)]
        if "tableChanges" in value:
            return self._schema(message, value, table, virtual_timestamp(value.get("ts")))
        timestamp = change_timestamp(value.get("ts"), message)
        metadata = {name: member for name, member in value.items() if name not in ROW_MEMBERS}
        change = RowChange(self._settings.epoch, message, table, timestamp, metadata)
        images, row, op = None, dict[str, Any](), ""
        try:
            kind = _kind(value)
            op = Operation.DELETE if kind == "erase" else Operation.UPSERT
            key = value.get("key")
            known = self._tables.has_schema(table)
            if known:
                images = self._tables.images(table)
            else:
                images = guess_images(table, number_key(key), *(value.get(part) for part in (kind, *IMAGES)))
            if not isinstance(key, list):
                raise DecodeError(NO_KEY, "the key is not an array")
            row = images.key_row(key)
            record = self._row(kind, value, row, images, change)
            return [*self._tables.announce(images.schema), record if known else mark_guessed(record)]
        except DecodeError as error:
            for part in (*KINDS, *IMAGES[:1]):
                row = {**row, **_members(value, part)}
            return [change.unreadable(str(error), op, images, row)]

    def _row(self, kind: str, value: Row, key_row: Row, images: RowImages, change: RowChange) -> ChangeRecord:
        """An image is the whole row without its key. An update without an image contains the changed columns; in the
        modes KEYS_ONLY and OLD_IMAGE it contains none, and the row must be fetched. Only in the mode UPDATES can an
        update be empty: in others, taking it for a row without values would set the columns to NULL."""
        key = images.key(key_row)
        columns = as_row(value[kind], kind)
        old = None if value.get("oldImage") is None else {**key_row, **as_row(value["oldImage"], "oldImage")}
        before = images.image(old) if old is not None else None
        if kind == "erase":
            if columns or value.get("newImage") is not None:
                raise DecodeError(CONTRADICTION, "an erase with columns or newImage")
            return change.record(Operation.DELETE, images, key, before)
        if value.get("newImage") is not None:
            if columns:
                raise DecodeError(CONTRADICTION, f"{kind} with both columns and newImage")
            after = images.image({**key_row, **as_row(value["newImage"], "newImage")})
            return change.record(self._operation(old is not None), images, key, before, after)
        if kind == "reset" and old is None and (columns or self._mode is FeedMode.UPDATES):
            return change.record(Operation.REPLACE, images, key, None, images.image({**key_row, **columns}))
        if columns or (self._mode is FeedMode.UPDATES and old is None):
            after = images.image({**key_row, **columns})
            return change.record(Operation.UPSERT, images, key, before, after)
        return change.record(Operation.UPSERT, images, key, before, images.image(key_row), ALL_COLUMNS)

    def _operation(self, had_row: bool) -> Operation:
        if had_row:
            return Operation.UPDATE
        return Operation.INSERT if self._mode is FeedMode.NEW_AND_OLD_IMAGES else Operation.UPSERT

    def _barrier(self, message: Message, value: Row, table: str) -> ChangeRecord:
        """The partition contains all older changes. The barrier of a table is the minimum over its partitions."""
        timestamp = virtual_timestamp(value["resolved"])
        if timestamp.commit_ts is None:
            raise DecodeError(NO_ORDER, "a barrier without a virtual timestamp, or of a time outside the calendar")
        record = self._control(message, table, timestamp, Operation.BARRIER)
        record.after = dumps({**value, "channel": message.channel})
        return record

    def _schema(self, message: Message, value: Row, table: str, timestamp: VirtualTimestamp) -> list[Item]:
        """Every partition contains the schema record, at the same position, so that it counts once."""
        changes = value["tableChanges"]
        if timestamp == NO_TIME:
            raise DecodeError(NO_ORDER, "a schema record without a virtual timestamp")
        if not isinstance(changes, list) or len(changes) != 1:
            raise DecodeError(WRONG_VALUE, "a schema record that does not have exactly one table")
        definition = as_row(as_row(changes[0], "the change").get("table"), "the table")
        schema = self._tables.declared(feed_schema(table, definition))
        record = self._control(message, table, timestamp, Operation.SCHEMA)
        record.schema_id, record.after = schema.schema_id, canonical(schema.plain())
        record.position = dumps({**value, "channel": message.channel, "offset": message.offset})
        record.event_id = f"{table}:schema:{dumps(definition.get('schemaVersion'))}"
        return [*self._tables.announce(schema), record]

    def _control(self, message: Message, table: str, timestamp: VirtualTimestamp, op: Operation) -> ChangeRecord:
        return ChangeRecord(
            table,
            op,
            epoch_prefix(self._settings.epoch) + timestamp.tail(0 if timestamp.step else message.offset, DELETED),
            "",
            tx_id=timestamp.tx_id,
            commit_ts=timestamp.commit_ts,
            position=dumps({"channel": message.channel, "offset": message.offset}),
            event_id=f"{message.channel}:{message.offset}",
        )


def _kind(value: Row) -> str:
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) > 1:
        raise DecodeError(CONTRADICTION, f"both {kinds[0]} and {kinds[1]}")
    if not kinds:
        raise DecodeError(UNKNOWN_OPERATION, "none of update, reset and erase")
    return kinds[0]


def _members(value: Row, name: str) -> Row:
    part = value.get(name)
    return part if isinstance(part, dict) else {}

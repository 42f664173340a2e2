"""YDB's own JSON: changes of rows, barriers, schemas. Pure."""

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
from airflow_cdc_provider.connectors.decoders.common.images import RowImages, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.ydb.inferred_rows import guessed, marked, numbered
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode, YdbOptions
from airflow_cdc_provider.connectors.decoders.ydb.positions import GONE, Moment, moment_of
from airflow_cdc_provider.connectors.decoders.ydb.records import EVERYTHING, Change
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables, feed_schema
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.serde import to_plain

KINDS = ("update", "reset", "erase")
IMAGES = ("newImage", "oldImage")
ROW_MEMBERS = frozenset({"key", *KINDS, *IMAGES})
Row = Mapping[str, Any]


class JsonForm:
    def __init__(self, setting: DecoderSettings, options: YdbOptions, tables: FeedTables) -> None:
        self._setting = setting
        self._mode = options.mode
        self._tables = tables

    def decode(self, message: Message, value: Row, table: str) -> list[Item]:
        """Raises DecodeError where not even the place is clear."""
        if "resolved" in value:
            return [self._barrier(message, value, table)]
        moment = moment_of(value.get("ts"))
        if "tableChanges" in value:
            return self._schema(message, value, table, moment)
        facts = {name: one for name, one in value.items() if name not in ROW_MEMBERS}
        change = Change(self._setting.epoch, message, table, moment, facts)
        images, row, op = None, dict[str, Any](), ""
        try:
            kind = _kind(value)
            op = Operation.DELETE if kind == "erase" else Operation.UPSERT
            key = value.get("key")
            known = self._tables.knows(table)
            if known:
                images = self._tables.images(table)
            else:
                images = guessed(table, numbered(key), *(value.get(part) for part in (kind, *IMAGES)))
            if not isinstance(key, list):
                raise DecodeError(NO_KEY, "the key is no array")
            row = images.key_row(key)
            told = self._row(kind, value, row, images, change)
            return [*self._tables.announced(images.schema), told if known else marked(told)]
        except DecodeError as error:
            row = {**row, **{name: one for part in (*KINDS, *IMAGES[:1]) for name, one in _members(value, part)}}
            return [change.unreadable(str(error), op, images, row)]

    def _row(self, kind: str, value: Row, key_row: Row, images: RowImages, change: Change) -> ChangeRecord:
        """An image is the whole row but its key. Without one, an update tells the columns it names; where it can name
        none (KEYS_ONLY, OLD_IMAGE), the row must be fetched. An empty one names none, unless the feed is known to be of
        updates: to take it for a row of nothing would empty the row."""
        key = images.key(key_row)
        given = as_row(value[kind], kind)
        old = None if value.get("oldImage") is None else {**key_row, **as_row(value["oldImage"], "oldImage")}
        then = images.image(old) if old is not None else None
        if kind == "erase":
            if given or value.get("newImage") is not None:
                raise DecodeError(CONTRADICTION, "an erase that tells a row after it")
            return change.record(Operation.DELETE, images, key, then)
        if value.get("newImage") is not None:
            if given:
                raise DecodeError(CONTRADICTION, f"{kind} names columns beside an image")
            now = images.image({**key_row, **as_row(value["newImage"], "newImage")})
            return change.record(self._arrival(old is not None), images, key, then, now)
        if kind == "reset" and old is None and (given or self._mode is FeedMode.UPDATES):
            return change.record(Operation.REPLACE, images, key, None, images.image({**key_row, **given}))
        if given or (self._mode is FeedMode.UPDATES and old is None):
            now = images.image({**key_row, **given})
            return change.record(Operation.UPSERT, images, key, then, now)
        return change.record(Operation.UPSERT, images, key, then, images.image(key_row), EVERYTHING)

    def _arrival(self, had_row: bool) -> Operation:
        if had_row:
            return Operation.UPDATE
        return Operation.INSERT if self._mode is FeedMode.NEW_AND_OLD_IMAGES else Operation.UPSERT

    def _barrier(self, message: Message, value: Row, table: str) -> ChangeRecord:
        """Everything older is in this partition already. The barrier of a table is the least of all partitions'."""
        if value["resolved"] is None:
            raise DecodeError(NO_ORDER, "a barrier without a virtual timestamp")
        moment = moment_of(value["resolved"])
        record = self._control(message, table, moment, Operation.BARRIER)
        record.after = dumps({**value, "channel": message.channel})
        return record

    def _schema(self, message: Message, value: Row, table: str, moment: Moment) -> list[Item]:
        """Every partition tells it: its place is the same in all of them, so it counts once."""
        changes = value["tableChanges"]
        if not isinstance(changes, list) or len(changes) != 1:
            raise DecodeError(WRONG_VALUE, "a schema record that is not about one table")
        told = as_row(as_row(changes[0], "the change").get("table"), "the table")
        schema = feed_schema(table, told)
        record = self._control(message, table, moment, Operation.SCHEMA)
        record.schema_id, record.after = schema.schema_id, canonical(to_plain(schema))
        record.position = dumps({**value, "channel": message.channel, "offset": message.offset})
        record.event_id = f"{table}:schema:{dumps(told.get('schemaVersion'))}"
        return [*self._tables.announced(schema), record]

    def _control(self, message: Message, table: str, moment: Moment, op: Operation) -> ChangeRecord:
        return ChangeRecord(
            table,
            op,
            epoch_prefix(self._setting.epoch) + moment.tail(0 if moment.step else message.offset, GONE),
            "",
            tx_id=moment.tx_id,
            commit_ts=moment.commit_ts,
            position=dumps({"channel": message.channel, "offset": message.offset}),
            event_id=f"{message.channel}:{message.offset}",
        )


def _kind(value: Row) -> str:
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) > 1:
        raise DecodeError(CONTRADICTION, f"both {kinds[0]} and {kinds[1]}")
    if not kinds:
        raise DecodeError(UNKNOWN_OPERATION, "neither update nor reset nor erase")
    return kinds[0]


def _members(value: Row, name: str) -> list[tuple[str, Any]]:
    part = value.get(name)
    return list(part.items()) if isinstance(part, dict) else []

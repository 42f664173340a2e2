"""YDB's own JSON: changes of rows, barriers, schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.formats.exact_json import dumps
from airflow_cdc_provider.connectors.formats.images import Images, as_row
from airflow_cdc_provider.connectors.formats.message import Item, Message, Setting
from airflow_cdc_provider.connectors.formats.unreadable import (
    CONTRADICTION,
    NO_KEY,
    NO_ORDER,
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    Unreadable,
)
from airflow_cdc_provider.connectors.ydb.guessed import guessed, marked, numbered
from airflow_cdc_provider.connectors.ydb.options import Mode, YdbOptions
from airflow_cdc_provider.connectors.ydb.places import GONE, Moment, moment_of
from airflow_cdc_provider.connectors.ydb.records import EVERYTHING, Change
from airflow_cdc_provider.connectors.ydb.tables import Tables, told_schema
from airflow_cdc_provider.core.changes import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.plain import to_plain
from airflow_cdc_provider.core.positions import epoch_prefix

KINDS = ("update", "reset", "erase")
IMAGES = ("newImage", "oldImage")
ROW_MEMBERS = frozenset({"key", *KINDS, *IMAGES})
Row = Mapping[str, Any]


class JsonForm:
    def __init__(self, setting: Setting, options: YdbOptions, tables: Tables) -> None:
        self._setting = setting
        self._mode = options.mode
        self._tables = tables

    def decode(self, message: Message, value: Row, table: str) -> list[Item]:
        """Raises Unreadable where not even the place is clear."""
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
                raise Unreadable(NO_KEY, "the key is no array")
            row = images.key_row(key)
            told = self._row(kind, value, row, images, change)
            return [*self._tables.announced(images.schema), told if known else marked(told)]
        except Unreadable as error:
            row = {**row, **{name: one for part in (*KINDS, *IMAGES[:1]) for name, one in _members(value, part)}}
            return [change.unreadable(str(error), op, images, row)]

    def _row(self, kind: str, value: Row, key_row: Row, images: Images, change: Change) -> ChangeRecord:
        """An image is the whole row but its key. Without one, an update tells the columns it names; where it can name
        none (KEYS_ONLY, OLD_IMAGE), the row must be fetched. An empty one names none, unless the feed is known to be of
        updates: to take it for a row of nothing would empty the row."""
        key = images.key(key_row)
        given = as_row(value[kind], kind)
        old = None if value.get("oldImage") is None else {**key_row, **as_row(value["oldImage"], "oldImage")}
        then = images.image(old) if old is not None else None
        if kind == "erase":
            if given or value.get("newImage") is not None:
                raise Unreadable(CONTRADICTION, "an erase that tells a row after it")
            return change.record(Operation.DELETE, images, key, then)
        if value.get("newImage") is not None:
            if given:
                raise Unreadable(CONTRADICTION, f"{kind} names columns beside an image")
            now = images.image({**key_row, **as_row(value["newImage"], "newImage")})
            return change.record(self._arrival(old is not None), images, key, then, now)
        if kind == "reset" and old is None and (given or self._mode is Mode.UPDATES):
            return change.record(Operation.REPLACE, images, key, None, images.image({**key_row, **given}))
        if given or (self._mode is Mode.UPDATES and old is None):
            now = images.image({**key_row, **given})
            return change.record(Operation.UPSERT, images, key, then, now)
        return change.record(Operation.UPSERT, images, key, then, images.image(key_row), EVERYTHING)

    def _arrival(self, had_row: bool) -> Operation:
        if had_row:
            return Operation.UPDATE
        return Operation.INSERT if self._mode is Mode.NEW_AND_OLD_IMAGES else Operation.UPSERT

    def _barrier(self, message: Message, value: Row, table: str) -> ChangeRecord:
        """Everything older is in this partition already. The barrier of a table is the least of all partitions'."""
        if value["resolved"] is None:
            raise Unreadable(NO_ORDER, "a barrier without a virtual timestamp")
        moment = moment_of(value["resolved"])
        record = self._control(message, table, moment, Operation.BARRIER)
        record.after = dumps({**value, "channel": message.channel})
        return record

    def _schema(self, message: Message, value: Row, table: str, moment: Moment) -> list[Item]:
        """Every partition tells it: its place is the same in all of them, so it counts once."""
        changes = value["tableChanges"]
        if not isinstance(changes, list) or len(changes) != 1:
            raise Unreadable(WRONG_VALUE, "a schema record that is not about one table")
        told = as_row(as_row(changes[0], "the change").get("table"), "the table")
        schema = told_schema(table, told)
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
        raise Unreadable(CONTRADICTION, f"both {kinds[0]} and {kinds[1]}")
    if not kinds:
        raise Unreadable(UNKNOWN_OPERATION, "neither update nor reset nor erase")
    return kinds[0]


def _members(value: Row, name: str) -> list[tuple[str, Any]]:
    part = value.get(name)
    return list(part.items()) if isinstance(part, dict) else []

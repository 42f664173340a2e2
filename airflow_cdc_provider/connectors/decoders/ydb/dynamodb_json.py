"""DYNAMODB_STREAMS_JSON of a changefeed. Pure.

Items have no common columns. Without a declared schema, the columns are those of the key and ``document``: the whole
item as received, with every value tagged with its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import times, untyped_values, values
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    UNKNOWN_OPERATION,
    WRONG_NUMBER,
    WRONG_TIME,
    WRONG_VALUE,
    DecodeError,
    PartialDecode,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.connectors.decoders.ydb.positions import DIGITS, sequence_tail
from airflow_cdc_provider.connectors.decoders.ydb.records import ALL_COLUMNS, CODEC
from airflow_cdc_provider.connectors.decoders.ydb.tables import FeedTables
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

DOCUMENT = "document"
KEY_KINDS = {"S": Kind.TEXT, "N": Kind.TEXT, "B": Kind.BYTES}
NAMES = {"INSERT": Operation.INSERT, "MODIFY": Operation.UPDATE, "REMOVE": Operation.DELETE}
ROW_MEMBERS = frozenset({"Keys", "NewImage", "OldImage"})
COLLECTIONS = frozenset({"SS", "NS", "BS", "L", "M"})
TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", *COLLECTIONS})
NUMBERS = frozenset({"N"})
TAGS_OF: Mapping[Kind, frozenset[str]] = {
    Kind.BOOLEAN: frozenset({"BOOL"}),
    Kind.DECIMAL: frozenset({"N", "S"}),
    Kind.TEXT: frozenset({"N", "S"}),
    Kind.JSON: frozenset({"BOOL", "N", "S"}),
    Kind.BYTES: frozenset({"B"}),
    **dict.fromkeys((Kind.UUID, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), frozenset({"S"})),
}
"""Kind of a column → the tags of its scalar values; others have numbers."""
TIMES = {
    Kind.DATE: times.date_of_text,
    Kind.TIMESTAMP: times.timestamp_of_text,
    Kind.TIMESTAMPTZ: times.timestamptz_of_text,
}
Attributes = Mapping[str, Any]


class DynamoDbJson:
    def __init__(self, settings: DecoderSettings, tables: FeedTables) -> None:
        self._settings = settings
        self._tables = tables

    def decode(self, message: Message, value: Mapping[str, Any], table: str) -> list[Item]:
        """Raises DecodeError if not even the position can be decoded."""
        body = as_row(value["dynamodb"], "dynamodb")
        name = value.get("eventName")
        if not isinstance(name, str) or name not in NAMES:
            raise DecodeError(UNKNOWN_OPERATION, "eventName is not a known operation")
        op = NAMES[name]
        tail = sequence_tail(body.get("SequenceNumber"), "00" if op is Operation.DELETE else "01")
        metadata = {member: content for member, content in value.items() if member != "dynamodb"}
        metadata |= {member: content for member, content in body.items() if member not in ROW_MEMBERS}
        position = dumps(metadata)
        try:
            return self._row(message, op, body, table, tail, position, value.get("eventID"))
        except DecodeError as error:
            known = PartialDecode(table, op.value, position=position, tail=tail, width=DIGITS)
            return [undecoded_record(CODEC, self._settings.epoch, message, str(error), known)]

    def _row(
        self, message: Message, op: Operation, body: Attributes, table: str, tail: str, position: str, event_id: Any
    ) -> list[Item]:
        keys = as_row(body.get("Keys"), "Keys")
        schema = self._settings.schema(table) or _schema(table, keys)
        if not keys or set(keys) != set(schema.key):
            raise DecodeError(NO_KEY, "Keys does not match the key columns of the table")
        key = f"[{','.join(_value(keys[name], schema.column(name)) for name in schema.key)}]"
        before, after = (_image(body.get(name), schema) for name in ("OldImage", "NewImage"))
        is_delete = op is Operation.DELETE
        if is_delete and after is not None:
            raise DecodeError(CONTRADICTION, "a REMOVE with NewImage")
        refetch: tuple[str, ...] = ()
        if not is_delete and after is None:
            after, refetch = _image(keys, schema, whole=False), ALL_COLUMNS
        if not is_delete and (refetch or (op is Operation.UPDATE and before is None)):
            op = Operation.UPSERT
        created_at_ms = body.get("ApproximateCreationDateTime")
        record = ChangeRecord(
            table,
            op,
            epoch_prefix(self._settings.epoch) + tail,
            schema.schema_id,
            key_before=key if is_delete or op is Operation.UPDATE else None,
            key=None if is_delete else key,
            before=before.text if before else None,
            after=after.text if after else None,
            before_complete=before is not None,
            after_complete=after.complete if after else False,
            refetch=refetch,
            commit_ts=datetime_of_us(created_at_ms * 1000) if type(created_at_ms) is int else None,
            position=position,
            event_id=event_id if isinstance(event_id, str) else f"{message.channel}:{message.offset}",
        )
        return [*self._tables.announce(schema), record]


def _schema(table: str, keys: Attributes) -> TableSchema:
    columns = [
        Column(name, LogicalType(KEY_KINDS.get(_untag(value)[0], Kind.TEXT)), False) for name, value in keys.items()
    ]
    return TableSchema(table, (*columns, Column(DOCUMENT, LogicalType(Kind.JSON))), tuple(keys))


def _image(attributes: Any, schema: TableSchema, whole: bool = True) -> RowImage | None:
    """An attribute that an item lacks is NULL. ``whole``: ``attributes`` is an item, not only its key."""
    if attributes is None:
        return None
    item = as_row(attributes, "an image")
    for value in item.values():
        _untag(value)
    members = []
    for column in schema.columns:
        if column.name in item:
            members.append(f"{encode_basestring(column.name)}:{_value(item[column.name], column)}")
        elif column.name == DOCUMENT and whole:
            members.append(f'"{DOCUMENT}":{encode_basestring(dumps(item))}')
        elif whole:
            members.append(f"{encode_basestring(column.name)}:null")
    return RowImage("{" + ",".join(members) + "}", whole)


def _untag(tagged: Any) -> tuple[str, Any]:
    if not isinstance(tagged, dict) or len(tagged) != 1:
        raise DecodeError(WRONG_VALUE, "a value without a type tag")
    ((tag, value),) = tagged.items()
    if tag not in TAGS:
        raise DecodeError(WRONG_VALUE, "a value with an unknown type tag")
    return tag, value


def _value(tagged: Any, column: Column) -> str:
    """A column of JSON has the value without its tag if it is a scalar; a text column keeps the tags of others."""
    tag, value = _untag(tagged)
    if tag == "NULL":
        return "null"
    if tag in COLLECTIONS:
        if column.type.kind not in (Kind.JSON, Kind.TEXT):
            raise DecodeError(WRONG_VALUE, "a set, list or map in a scalar column")
        return encode_basestring(dumps(tagged))
    if tag not in TAGS_OF.get(column.type.kind, NUMBERS):
        raise DecodeError(WRONG_VALUE, f"a value with the tag {tag} in a column of type {column.type}")
    return _number(value, column.type) if tag == "N" else _converter(column.type)(value)


def _converter(kind: LogicalType) -> Converter:
    match kind.kind:
        case Kind.JSON:
            return untyped_values.document
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return partial(TIMES[kind.kind], warn=_too_fine)
        case _:
            return values.converter(kind, _no_warnings)


def _number(value: Any, kind: LogicalType) -> str:
    """Numbers are sent as text of up to 38 digits."""
    if not isinstance(value, str):
        raise DecodeError(WRONG_VALUE, "a number that is not a string")
    if kind.kind is Kind.TEXT:
        return encode_basestring(value)
    if kind.kind in (Kind.DECIMAL, Kind.JSON):
        return _converter(kind)(value)
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise DecodeError(WRONG_NUMBER, "not a number") from error
    if kind.kind in (Kind.INT16, Kind.INT32, Kind.INT64):
        if not number.is_finite() or number != number.to_integral_value():
            raise DecodeError(WRONG_NUMBER, "not an integer")
        return values.integer(kind.kind)(int(number))
    return values.converter(kind, _no_warnings)(number)


def _too_fine(_code: str) -> None:
    raise DecodeError(WRONG_TIME, "a time with digits below a microsecond")


def _no_warnings(_code: str) -> None:
    """The converters used here raise and never warn."""

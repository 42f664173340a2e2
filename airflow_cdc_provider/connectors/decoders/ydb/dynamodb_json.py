"""DYNAMODB_STREAMS_JSON of a changefeed. Pure.

Items have no common columns. Where nobody describes the table, its columns are the key's and ``document``: the whole
item as it came, every value tagged with its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import values
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    UNKNOWN_OPERATION,
    WRONG_NUMBER,
    WRONG_VALUE,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us
from airflow_cdc_provider.connectors.decoders.ydb.positions import DIGITS, sequence_tail
from airflow_cdc_provider.connectors.decoders.ydb.records import CODEC, EVERYTHING
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

DOCUMENT = "document"
KEY_KINDS = {"S": Kind.TEXT, "N": Kind.TEXT, "B": Kind.BYTES}
NAMES = {"INSERT": Operation.INSERT, "MODIFY": Operation.UPDATE, "REMOVE": Operation.DELETE}
ROW_MEMBERS = frozenset({"Keys", "NewImage", "OldImage"})
TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
Attributes = Mapping[str, Any]


class DynamoForm:
    def __init__(self, setting: DecoderSettings) -> None:
        self._setting = setting
        self._announced: set[str] = set()

    def decode(self, message: Message, value: Mapping[str, Any], table: str) -> list[Item]:
        """Raises DecodeError where not even the place is clear."""
        body = as_row(value["dynamodb"], "dynamodb")
        name = value.get("eventName")
        if not isinstance(name, str) or name not in NAMES:
            raise DecodeError(UNKNOWN_OPERATION, "eventName is none that we know")
        op = NAMES[name]
        tail = sequence_tail(body.get("SequenceNumber"), "00" if op is Operation.DELETE else "01")
        facts = {one: told for one, told in value.items() if one != "dynamodb"}
        position = dumps({**facts, **{one: told for one, told in body.items() if one not in ROW_MEMBERS}})
        try:
            return self._row(message, op, body, table, tail, position, value.get("eventID"))
        except DecodeError as error:
            known = Understood(table, op.value, position=position, tail=tail, width=DIGITS)
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), known)]

    def _row(
        self, message: Message, op: Operation, body: Attributes, table: str, tail: str, position: str, event_id: Any
    ) -> list[Item]:
        keys = as_row(body.get("Keys"), "Keys")
        schema = self._setting.known(table) or _schema(table, keys)
        if not keys or set(keys) != set(schema.key):
            raise DecodeError(NO_KEY, "Keys are not the key's columns")
        key = f"[{','.join(_value(keys[name], schema.column(name)) for name in schema.key)}]"
        then, now = (_image(body.get(name), schema) for name in ("OldImage", "NewImage"))
        gone = op is Operation.DELETE
        if gone and now is not None:
            raise DecodeError(CONTRADICTION, "a REMOVE with a new image")
        refetch: tuple[str, ...] = ()
        if not gone and now is None:
            now, refetch = _image(keys, schema, whole=False), EVERYTHING
        if not gone and (refetch or (op is Operation.UPDATE and then is None)):
            op = Operation.UPSERT
        made_at_ms = body.get("ApproximateCreationDateTime")
        record = ChangeRecord(
            table,
            op,
            epoch_prefix(self._setting.epoch) + tail,
            schema.schema_id,
            key_before=key if gone or op is Operation.UPDATE else None,
            key=None if gone else key,
            before=then.text if then else None,
            after=now.text if now else None,
            before_complete=then is not None,
            after_complete=now.complete if now else False,
            refetch=refetch,
            commit_ts=moment_of_us(made_at_ms * 1000) if type(made_at_ms) is int else None,
            position=position,
            event_id=event_id if isinstance(event_id, str) else f"{message.channel}:{message.offset}",
        )
        if schema.schema_id in self._announced:
            return [record]
        self._announced.add(schema.schema_id)
        return [schema, record]


def _schema(table: str, keys: Attributes) -> TableSchema:
    columns = [
        Column(name, LogicalType(KEY_KINDS.get(_tagged(one)[0], Kind.TEXT)), False) for name, one in keys.items()
    ]
    return TableSchema(table, (*columns, Column(DOCUMENT, LogicalType(Kind.JSON))), tuple(keys))


def _image(told: Any, schema: TableSchema, whole: bool = True) -> RowImage | None:
    """An attribute that an item does not have is NULL; ``whole``: the item is told, not its key alone."""
    if told is None:
        return None
    item = as_row(told, "an image")
    for one in item.values():
        _tagged(one)
    members = []
    for column in schema.columns:
        if column.name in item:
            members.append(f"{encode_basestring(column.name)}:{_value(item[column.name], column)}")
        elif column.name == DOCUMENT and whole:
            members.append(f'"{DOCUMENT}":{encode_basestring(dumps(item))}')
        elif whole:
            members.append(f"{encode_basestring(column.name)}:null")
    return RowImage("{" + ",".join(members) + "}", whole)


def _tagged(told: Any) -> tuple[str, Any]:
    if not isinstance(told, dict) or len(told) != 1:
        raise DecodeError(WRONG_VALUE, "a value without its type")
    ((tag, value),) = told.items()
    if tag not in TAGS:
        raise DecodeError(WRONG_VALUE, "a value of an unknown type")
    return tag, value


def _value(told: Any, column: Column) -> str:
    tag, value = _tagged(told)
    if tag == "NULL":
        return "null"
    if tag in ("SS", "NS", "BS", "L", "M"):
        if column.type.kind not in (Kind.JSON, Kind.TEXT):
            raise DecodeError(WRONG_VALUE, "a set, list or map in a column of single values")
        return encode_basestring(dumps(told))
    if tag == "N":
        return _number(value, column.type)
    return values.converter(column.type, _unheard)(value)


def _number(value: Any, kind: LogicalType) -> str:
    """Numbers come as text, of up to 38 digits."""
    if not isinstance(value, str):
        raise DecodeError(WRONG_VALUE, "a number that is no text")
    if kind.kind in (Kind.TEXT, Kind.JSON):
        return encode_basestring(value)
    if kind.kind is Kind.DECIMAL:
        return values.converter(kind, _unheard)(value)
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise DecodeError(WRONG_NUMBER, "not a number") from error
    if kind.kind in (Kind.INT16, Kind.INT32, Kind.INT64):
        if not number.is_finite() or number != number.to_integral_value():
            raise DecodeError(WRONG_NUMBER, "not a whole number")
        return values.integer(kind.kind)(int(number))
    return values.converter(kind, _unheard)(number)


def _unheard(_code: str) -> None:
    """Nothing here warns: what does not fit is refused."""

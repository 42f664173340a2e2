"""Rows after ``ExtractNewRecordState``: no envelope, no before image, and only the offset as a position. Pure.

    order key = epoch 8 · offset 16 · phase 2

The changes of a key are in one partition and ordered by offset, as long as the number of partitions does not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    NO_SCHEMA,
    UNKNOWN_OPERATION,
    DecodeError,
    PartialDecode,
    required_order,
    undecoded_record,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import refusal
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us
from airflow_cdc_provider.connectors.decoders.debezium.changes import CODEC, NEEDS_BEFORE, require_sent
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.converters import semantic_converter
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.semantics import from_field
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayouts, fields_of
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

OF_ENVELOPES = ("deleted", "op", "ts_ms", "ts_us", "ts_ns")
OF_TRANSACTIONS = ("id", "total_order", "data_collection_order")
OF_SOURCES = (
    *("version", "connector", "name", "snapshot", "db", "sequence", "schema", "table", "collection"),
    *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    *("txId", "lsn", "xmin", "origin", "origin_lsn"),
    *("change_lsn", "commit_lsn", "event_serial_no"),
    *("scn", "commit_scn", "lcr_position", "rs_id", "ssn", "redo_thread", "user_name", "redo_sql", "row_id"),
    *("start_scn", "start_ts_ms", "commit_ts_ms"),
    *("ord", "h", "lsid", "txnNumber", "wallTime", "stxnid", "rs"),
)
ADDED = re.compile(f"__(?:{'|'.join((*OF_ENVELOPES, *OF_TRANSACTIONS, *OF_SOURCES))}|(?:source|transaction)[_.].+)")
"""The names of fields that the transform adds (``add.fields``, with its default prefix), not of columns."""
WITH_ID = {"schemaId", "payload"}
OPERATIONS = {
    "c": Operation.UPSERT,
    "u": Operation.UPSERT,
    "d": Operation.DELETE,
    "r": Operation.READ,
    None: Operation.UPSERT,
}
"""A row with a value that was not sent is an update, also after ``c``: a changed key is a delete and a ``c``."""
NEW_ROWS = ("c", "r")


class UnwrappedRows:
    def __init__(self, settings: DecoderSettings, layouts: TableLayouts, placeholders: Placeholders) -> None:
        self._settings = settings
        self._layouts = layouts
        self._placeholders = placeholders

    def decode(self, message: Message, value: ConnectValue, key: ConnectValue, table: str) -> list[Item]:
        if not table:
            raise DecodeError(NO_KEY, "the name of the topic does not contain a table")
        if not self._settings.includes(table):
            return [Ignored(1, table)]
        required_order(message.order)
        is_delete = value.payload is None
        tail = f"{message.offset:016x}{'00' if is_delete else '01'}"
        known = PartialDecode(table, "delete" if is_delete else "", tail=tail)
        try:
            return self._row(message, value, key, table)
        except DecodeError as error:
            return [undecoded_record(CODEC, self._settings.epoch, message, str(error), known)]

    def _row(self, message: Message, value: ConnectValue, key: ConnectValue, table: str) -> list[Item]:
        """A null value is a delete, unless deletes are rewritten to rows; without a key it is ignored."""
        key_row = {} if key.payload is None else as_row(key.payload, "the key")
        row = None if value.payload is None else as_row(value.payload, "the value")
        _require_row(row or {})
        if row is None and not key_row:
            return [Ignored(1)]
        schema = value if value.schema is None else ConnectValue(None, _without_added(value.schema), value.text)
        if row is None and not self._settings.schema(table):
            return [self._delete_by_key(message, key, key_row, table)]
        layout = self._layouts.get(table, "", schema, tuple(key_row), is_row=True)
        images = layout.images
        added = {
            name: field
            for name, field in (row or {}).items()
            if ADDED.fullmatch(name) and name not in images.schema.names
        }
        operation = _operation(row, added)
        sent = {name: column for name, column in (row or key_row).items() if name not in added}
        columns = dict(self._placeholders.known(sent))
        if operation is Operation.DELETE:  # a null may stand for an unknown value
            columns = {name: item for name, item in columns.items() if item is not None or name in images.schema.key}
        elif added.get("__op") not in NEW_ROWS:
            require_sent(columns, layout)
        if operation is Operation.UPSERT and len(columns) < len(sent):
            operation = Operation.UPDATE
        image = images.image(columns)
        row_key = images.key(columns if all(name in columns for name in images.schema.key) else key_row)
        record = self._record(message, table, images.schema_id, operation, added, row_key, image)
        record.warnings = images.take_warnings()
        return [*self._layouts.announce(layout, record.order_key), record]

    def _delete_by_key(
        self, message: Message, key: ConnectValue, key_row: Mapping[str, Any], table: str
    ) -> ChangeRecord:
        """For a table whose schema is only in the rows: a delete has none, so the key is decoded by its own schema."""
        if key.schema is None:
            raise DecodeError(NO_SCHEMA, f"a delete without a schema, and the schema of {table} is unknown")
        converters = {
            field["field"]: semantic_converter(from_field(field), _no_warnings) for field in fields_of(key.schema)
        }
        if converters.keys() != key_row.keys():
            raise DecodeError(NO_KEY, "the columns of the key differ from its schema")
        parts = ["null" if part is None else converters[name](part) for name, part in key_row.items()]
        return self._record(message, table, "", Operation.DELETE, {}, f"[{','.join(parts)}]", None)

    def _record(
        self,
        message: Message,
        table: str,
        schema_id: str,
        operation: Operation,
        added: Mapping[str, Any],
        key: str | None,
        image: RowImage | None,
    ) -> ChangeRecord:
        is_delete = operation is Operation.DELETE
        order_key = f"{epoch_prefix(self._settings.epoch)}{message.offset:016x}{'00' if is_delete else '01'}"
        at_ms = next((added[name] for name in ("__source_ts_ms", "__ts_ms") if type(added.get(name)) is int), None)
        return ChangeRecord(
            table,
            operation,
            order_key,
            schema_id,
            key_before=key if operation in NEEDS_BEFORE else None,
            key=None if is_delete else key,
            before=image.text if image and is_delete else None,
            after=image.text if image and not is_delete else None,
            after_complete=image.complete if image and not is_delete else False,
            commit_ts=datetime_of_us(at_ms * 1000) if at_ms is not None else None,
            position=dumps({**added, "channel": message.channel, "offset": message.offset}),
            event_id=f"{message.channel}:{message.offset}",
            snapshot="initial" if operation is Operation.READ else "none",
        )


def _require_row(row: Mapping[str, Any]) -> None:
    source = row.get("source")
    if "op" in row and isinstance(source, dict) and "connector" in source:
        raise DecodeError(CONTRADICTION, "an envelope with `op` and `source`, and no row: remove `unwrapped: true`")
    if row.keys() == WITH_ID and isinstance(row["payload"], dict):
        raise refusal(row, "debezium", "no row")


def _operation(row: Mapping[str, Any] | None, added: Mapping[str, Any]) -> Operation:
    op, deleted = added.get("__op"), added.get("__deleted")
    if row is None or deleted in ("true", True) or op == "d":
        return Operation.DELETE
    if deleted not in (None, "false", False):
        raise DecodeError(CONTRADICTION, "__deleted is neither true nor false")
    if not isinstance(op, str | None) or op not in OPERATIONS:
        raise DecodeError(UNKNOWN_OPERATION, "__op is not a known operation")
    return OPERATIONS[op]


def _without_added(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return dict(schema)
    row_fields = [
        field for field in fields if not (isinstance(field, dict) and ADDED.fullmatch(str(field.get("field"))))
    ]
    return {**schema, "fields": row_fields}


def _no_warnings(_code: str) -> None:
    """Warnings are about columns of a row, and a delete by key has none."""

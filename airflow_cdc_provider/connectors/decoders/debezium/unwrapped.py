"""Rows that went through ``ExtractNewRecordState``: no envelope, no row before, and no place but the topic's. Pure.

    order key = epoch 8 · offset 16 · phase 2

A key stays in its partition, so offsets order its changes, as long as the topic keeps its number of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    CONTRADICTION,
    NO_KEY,
    NO_SCHEMA,
    UNKNOWN_OPERATION,
    DecodeError,
    Understood,
    undecoded_message,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import RowImage, as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us
from airflow_cdc_provider.connectors.decoders.debezium.changes import CODEC
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectValue
from airflow_cdc_provider.connectors.decoders.debezium.converters import of_semantic
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.semantics import of_field
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayouts, fields_of
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

ADDED = "__"
"""How the names of added fields begin; columns of the row itself do not."""
OPERATIONS = {
    "c": Operation.UPSERT,
    "u": Operation.UPSERT,
    "d": Operation.DELETE,
    "r": Operation.READ,
    None: Operation.UPSERT,
}


class UnwrappedRows:
    def __init__(self, setting: DecoderSettings, layouts: TableLayouts, placeholders: Placeholders) -> None:
        self._setting = setting
        self._layouts = layouts
        self._placeholders = placeholders

    def decode(self, message: Message, value: ConnectValue, key: ConnectValue, table: str) -> list[Item]:
        if not table:
            raise DecodeError(NO_KEY, "the topic does not tell which table it is of")
        if not self._setting.wants(table):
            return [Ignored(1, table)]
        gone = value.payload is None
        known = Understood(table, "delete" if gone else "", tail=f"{message.offset:016x}{'00' if gone else '01'}")
        try:
            return self._row(message, value, key, table)
        except DecodeError as error:
            return [undecoded_message(CODEC, self._setting.epoch, message, str(error), known)]

    def _row(self, message: Message, value: ConnectValue, key: ConnectValue, table: str) -> list[Item]:
        """A value that is null is a delete, where deletes are not rewritten to rows; without key it deletes nothing."""
        names = {} if key.payload is None else as_row(key.payload, "the key")
        row = None if value.payload is None else as_row(value.payload, "the value")
        if row is None and not names:
            return [Ignored(1)]
        schema = value if value.schema is None else ConnectValue(None, _without_added(value.schema), value.text)
        if row is None and not self._setting.known(table):
            return [self._deleted_by_key(message, key, names, table)]
        layout = self._layouts.of(table, "", schema, tuple(names), is_row=True)
        images = layout.images
        added = {
            name: one for name, one in (row or {}).items() if name.startswith(ADDED) and name not in images.schema.names
        }
        operation = _operation(row, added)
        kept = {name: one for name, one in (row or names).items() if name not in added}
        kept = dict(self._placeholders.known(kept))
        if operation is Operation.DELETE:  # what shows NULL need not be NULL
            kept = {name: one for name, one in kept.items() if one is not None or name in images.schema.key}
        image = images.image(kept)
        told = images.key(kept if all(name in kept for name in images.schema.key) else names)
        record = self._record(message, table, images.schema_id, operation, added, told, image)
        record.warnings = images.warned()
        return [*self._layouts.announced(layout, record.order_key), record]

    def _deleted_by_key(
        self, message: Message, key: ConnectValue, names: Mapping[str, Any], table: str
    ) -> ChangeRecord:
        """The table is known by its rows' schemas only, and this one has none: the key's own must say what it is."""
        if key.schema is None:
            raise DecodeError(NO_SCHEMA, f"a delete without a schema, and none is known of {table}")
        made = {field["field"]: of_semantic(of_field(field), unsupported) for field in fields_of(key.schema)}
        if made.keys() != names.keys():
            raise DecodeError(NO_KEY, "a key of other columns than its schema has")
        told = f"[{','.join('null' if one is None else made[name](one) for name, one in names.items())}]"
        return self._record(message, table, "", Operation.DELETE, {}, told, None)

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
        gone = operation is Operation.DELETE
        order_key = f"{epoch_prefix(self._setting.epoch)}{message.offset:016x}{'00' if gone else '01'}"
        at_ms = next((added[name] for name in ("__source_ts_ms", "__ts_ms") if type(added.get(name)) is int), None)
        return ChangeRecord(
            table,
            operation,
            order_key,
            schema_id,
            key_before=key if gone else None,
            key=None if gone else key,
            before=image.text if image and gone else None,
            after=image.text if image and not gone else None,
            after_complete=image.complete if image and not gone else False,
            commit_ts=moment_of_us(at_ms * 1000) if at_ms is not None else None,
            position=dumps({**added, "channel": message.channel, "offset": message.offset}),
            event_id=f"{message.channel}:{message.offset}",
            snapshot="initial" if operation is Operation.READ else "none",
        )


def _operation(row: Mapping[str, Any] | None, added: Mapping[str, Any]) -> Operation:
    op, deleted = added.get("__op"), added.get("__deleted")
    if row is None or deleted in ("true", True) or op == "d":
        return Operation.DELETE
    if deleted not in (None, "false", False):
        raise DecodeError(CONTRADICTION, "__deleted is neither true nor false")
    if not isinstance(op, str | None) or op not in OPERATIONS:
        raise DecodeError(UNKNOWN_OPERATION, "__op is none that we know")
    return OPERATIONS[op]


def _without_added(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = schema.get("fields")
    if not isinstance(fields, list):
        return dict(schema)
    kept = [one for one in fields if not (isinstance(one, dict) and str(one.get("field")).startswith(ADDED))]
    return {**schema, "fields": kept}


def unsupported(_code: str) -> None:
    """Warnings are about rows, and here is none."""

"""Messages without a row: transactions, schemas, heartbeats, logical messages. Pure.

Records that belong to no single table have an empty table name and are ordered by the offsets of their messages.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    DecodeError,
    message_position,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import refusal
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.positions import snapshot_of
from airflow_cdc_provider.connectors.decoders.debezium.schema_history import schema_of
from airflow_cdc_provider.connectors.decoders.debezium.source_block import SourceBlock, source_of, statement_position
from airflow_cdc_provider.connectors.decoders.debezium.table_ids import changed_table
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix

POSTGRESQL_ID = re.compile(r"(\d+):\d+")
HEARTBEAT = frozenset({"ts_ms", "ts_us", "ts_ns"})
TRANSACTION = ("BEGIN", "END")
ENVELOPE = frozenset({"before", "after", "source", "op"})
ROW_ALONE = "a row without envelope; if the connector applies ExtractNewRecordState, set `unwrapped: true`"
HISTORICAL = "historical"
"""The schema was read by a snapshot of the connector and is not a change."""


def decode(
    message: Message, payload: Mapping[str, Any], settings: DecoderSettings, options: DebeziumOptions
) -> list[Item]:
    """Raises DecodeError if the message is of none of these kinds."""
    if payload.get("status") in TRANSACTION and "id" in payload:
        return [_transaction(message, payload, settings)]
    if "source" in payload and ("tableChanges" in payload or "ddl" in payload):
        return _schema_changes(message, payload, settings, options)
    if payload and payload.keys() <= HEARTBEAT:
        return [_source_record(message, payload, settings, "heartbeat")]
    is_row = payload and ENVELOPE.isdisjoint(payload)
    raise refusal(payload, "debezium", ROW_ALONE if is_row else "neither a row, a transaction nor a schema change")


def logical_message(
    message: Message, payload: Mapping[str, Any], block: SourceBlock, settings: DecoderSettings
) -> ChangeRecord:
    logical = as_row(payload.get("message"), "the logical message")
    try:
        b64decode(logical.get("content") or "", validate=True)
    except (Base64Error, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "a logical message whose content is not base64") from error
    record = _source_record(message, logical, settings, "message")
    record.position, record.commit_ts = block.position, block.commit_ts
    record.tx_id, record.tx_seq = block.tx_id, block.tx_seq
    return record


def _transaction(message: Message, payload: Mapping[str, Any], settings: DecoderSettings) -> ChangeRecord:
    """``event_count`` of an END is the number of events of the transaction in all tables."""
    status, tx_id = payload["status"], payload["id"]
    if not isinstance(tx_id, str):
        raise DecodeError(UNKNOWN_OPERATION, "a transaction whose id is not a string")
    record = _source_record(message, payload, settings, f"transaction {status.lower()}")
    match = POSTGRESQL_ID.fullmatch(tx_id)
    record.tx_id = match[1] if match else tx_id
    at_ms = payload.get("ts_ms")
    record.commit_ts = datetime_of_us(at_ms * 1000) if type(at_ms) is int else None
    return record


def _source_record(message: Message, body: Mapping[str, Any], settings: DecoderSettings, kind: str) -> ChangeRecord:
    return ChangeRecord(
        "",
        Operation.MESSAGE,
        f"{epoch_prefix(settings.epoch)}{message.offset:016x}",
        "",
        after=dumps({"kind": kind, **body}),
        position=message_position(message),
        event_id=f"{message.channel}:{message.offset}",
    )


def _schema_changes(
    message: Message, payload: Mapping[str, Any], settings: DecoderSettings, options: DebeziumOptions
) -> list[Item]:
    """One record per table in ``tableChanges``, for information. Messages of rows have schemas of their own, in the
    order of the rows."""
    connector, _ = source_of(payload)
    changes = payload.get("tableChanges") or []
    if not isinstance(changes, list):
        raise DecodeError(WRONG_VALUE, "tableChanges is not an array")
    if not changes:
        return [_source_record(message, payload, settings, "statement")]
    items: list[Item] = []
    for number, change in enumerate(changes):
        items += _table_change(message, payload, as_row(change, "a table change"), connector, settings, options, number)
    return items


def _table_change(
    message: Message,
    payload: Mapping[str, Any],
    change: Mapping[str, Any],
    connector: str,
    settings: DecoderSettings,
    options: DebeziumOptions,
    number: int,
) -> list[Item]:
    table = settings.copied_name(changed_table(connector, change))
    if not settings.includes(table):
        return [Ignored(1, table)]
    source = payload["source"]
    statement = {
        f"statement_{name}": value for name, value in payload.items() if name not in ("source", "tableChanges")
    }
    snapshot = snapshot_of(source, "")
    block = SourceBlock(
        connector, table, snapshot, None, None, None, None, dumps({**source, **statement, "change": change}), source
    )
    position = statement_position(block, message.offset)
    record = ChangeRecord(
        table,
        Operation.MESSAGE,
        f"{epoch_prefix(settings.epoch)}{position.at}{position.ordinal}00",
        "",
        position=block.position,
        event_id=f"{message.channel}:{message.offset}:{number}",
        snapshot=snapshot,
        warnings=(HISTORICAL,) if snapshot != "none" else (),
    )
    if change.get("table") is None:
        record.after = dumps({"kind": "table", "type": change.get("type")})
        return [record]
    schema = schema_of(table, connector, as_row(change["table"], "the table"), options)
    record.after = canonical({"kind": "schema", **schema.plain()})
    return [schema, record]

"""Messages that tell of no row: transactions, schemas, heartbeats, logical messages. Pure.

What is of no single table is told of the table with the empty name, in the order of its messages.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    UNKNOWN_OPERATION,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    message_position as here,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us
from airflow_cdc_provider.connectors.decoders.debezium.envelope import SourceBlock, event_position, source_of
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.positions import snapshot_of
from airflow_cdc_provider.connectors.decoders.debezium.schema_history import schema_of, table_name
from airflow_cdc_provider.connectors.source import Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.positions import epoch_prefix
from airflow_cdc_provider.core.serde import to_plain

POSTGRESQL_ID = re.compile(r"(\d+):\d+")
HEARTBEAT = frozenset({"ts_ms", "ts_us", "ts_ns"})
TRANSACTION = ("BEGIN", "END")
ENVELOPE = frozenset({"before", "after", "source", "op"})
ROW_ALONE = "a row without envelope; where events went through ExtractNewRecordState: `unwrapped: true`"
HISTORICAL = "historical"
"""The schema is as of the connector's first copy: it tells columns and is no change."""


def decode(
    message: Message, payload: Mapping[str, Any], setting: DecoderSettings, options: DebeziumOptions
) -> list[Item]:
    """Raises DecodeError where it is none of them."""
    if payload.get("status") in TRANSACTION and "id" in payload:
        return [_transaction(message, payload, setting)]
    if "tableChanges" in payload or "ddl" in payload:
        return _schema_changes(message, payload, setting, options)
    if payload and payload.keys() <= HEARTBEAT:
        return [_whole_source(message, payload, setting, "heartbeat")]
    if payload and ENVELOPE.isdisjoint(payload):
        raise DecodeError(UNKNOWN_OPERATION, ROW_ALONE)
    raise DecodeError(UNKNOWN_OPERATION, "neither a row, nor a transaction, nor a schema")


def logical_message(
    message: Message, payload: Mapping[str, Any], block: SourceBlock, setting: DecoderSettings
) -> ChangeRecord:
    told = as_row(payload.get("message"), "the logical message")
    try:
        b64decode(told.get("content") or "", validate=True)
    except (BadBase64, TypeError, ValueError) as error:
        raise DecodeError(WRONG_VALUE, "a logical message that is not base64") from error
    record = _whole_source(message, told, setting, "message")
    record.position, record.commit_ts = block.position, block.commit_ts
    record.tx_id, record.tx_seq = block.tx_id, block.tx_seq
    return record


def _transaction(message: Message, payload: Mapping[str, Any], setting: DecoderSettings) -> ChangeRecord:
    """``event_count`` of an END is how many events the transaction has, over all tables."""
    status, tx_id = payload["status"], payload["id"]
    if not isinstance(tx_id, str):
        raise DecodeError(UNKNOWN_OPERATION, "a transaction that neither begins nor ends")
    record = _whole_source(message, payload, setting, f"transaction {status.lower()}")
    found = POSTGRESQL_ID.fullmatch(tx_id)
    record.tx_id = found[1] if found else tx_id
    at_ms = payload.get("ts_ms")
    record.commit_ts = moment_of_us(at_ms * 1000) if type(at_ms) is int else None
    return record


def _whole_source(message: Message, body: Mapping[str, Any], setting: DecoderSettings, kind: str) -> ChangeRecord:
    return ChangeRecord(
        "",
        Operation.MESSAGE,
        f"{epoch_prefix(setting.epoch)}{message.offset:016x}",
        "",
        after=dumps({"kind": kind, **body}),
        position=here(message),
        event_id=f"{message.channel}:{message.offset}",
    )


def _schema_changes(
    message: Message, payload: Mapping[str, Any], setting: DecoderSettings, options: DebeziumOptions
) -> list[Item]:
    """One record per table that the statement told columns of. The statement itself is kept, and never carried out."""
    connector, _ = source_of(payload)
    changes = payload.get("tableChanges") or []
    if not isinstance(changes, list):
        raise DecodeError(WRONG_VALUE, "tableChanges is no list")
    if not changes:
        return [_whole_source(message, payload, setting, "statement")]
    items: list[Item] = []
    for number, change in enumerate(changes):
        items += _table_change(message, payload, as_row(change, "a table change"), connector, setting, options, number)
    return items


def _table_change(
    message: Message,
    payload: Mapping[str, Any],
    change: Mapping[str, Any],
    connector: str,
    setting: DecoderSettings,
    options: DebeziumOptions,
    number: int,
) -> list[Item]:
    table = table_name(connector, change)
    if not setting.wants(table):
        return [Ignored(1, table)]
    source = payload["source"]
    told = {f"statement_{name}": one for name, one in payload.items() if name not in ("source", "tableChanges")}
    snapshot = snapshot_of(source, "")
    block = SourceBlock(
        connector, table, snapshot, None, None, None, None, dumps({**source, **told, "change": change}), source
    )
    place = event_position(block, message.offset, False)
    record = ChangeRecord(
        table,
        Operation.MESSAGE,
        f"{epoch_prefix(setting.epoch)}{place.at}{place.ordinal}00",
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
    record.op, record.schema_id, record.after = Operation.SCHEMA, schema.schema_id, canonical(to_plain(schema))
    return [schema, record]

"""The source block of an envelope: table, transaction, time and position. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.foreign_messages import OF_FORMATS, not_supported
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us
from airflow_cdc_provider.connectors.decoders.debezium.positions import (
    POSITIONS,
    EventPosition,
    oracle_statement,
    snapshot_of,
)
from airflow_cdc_provider.core.table.source_names import table_name

NAMES: Mapping[str, tuple[str, ...]] = {
    "mysql": ("db", "table"),
    "mariadb": ("db", "table"),
    "postgresql": ("schema", "table"),
    "sqlserver": ("db", "schema", "table"),
    "oracle": ("schema", "table"),
    "mongodb": ("db", "collection"),
}
"""Connector → the fields of a table's name, as in its default topic after the prefix."""

ROWS = ("before", "after")
PARTS = (*ROWS, "source", "op", "transaction")
SOURCE, BEFORE, AFTER = '"source":', '"before":', '"after":'


class SourceBlock(NamedTuple):
    """``position``: the envelope as received, without its rows. ``tx_seq``: event number in the transaction."""

    connector: str
    table: str
    snapshot: str
    row_id: str | None
    tx_id: str | None
    tx_seq: int | None
    commit_ts: datetime | None
    position: str
    source: Mapping[str, Any]


def source_of(payload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The connector and its source block. Raises DecodeError."""
    source = as_row(payload.get("source"), "the source block")
    connector = source.get("connector")
    if not isinstance(connector, str) or not connector:
        raise DecodeError(NO_ORDER, "the source block names no connector")
    if connector in OF_FORMATS:
        raise not_supported("connector", connector, POSITIONS, f"set `format: {OF_FORMATS[connector]}`")
    if connector not in POSITIONS:
        raise not_supported("connector", connector, POSITIONS)
    return connector, source


def table_of(connector: str, source: Mapping[str, Any]) -> str:
    parts = [source.get(name) for name in NAMES[connector]]
    try:
        table = table_name(*parts)
    except TypeError as error:
        raise DecodeError(WRONG_VALUE, "the source block does not name the table") from error
    if "" in parts:
        raise DecodeError(WRONG_VALUE, "the source block does not name the table")
    return table


def source_block(
    op: Any, transaction: Any, position: str, connector: str, source: Mapping[str, Any], table: str
) -> SourceBlock:
    if transaction is not None:
        transaction = as_row(transaction, "the transaction block")
    return SourceBlock(
        connector,
        table,
        snapshot_of(source, op),
        _row_id(source) if connector == "oracle" else None,
        _tx_id(connector, source, transaction),
        _total_order(transaction),
        _commit_time(connector, source),
        position,
        source,
    )


def event_position(block: SourceBlock, offset: int | None, keyless: bool) -> EventPosition:
    read_position, _ = POSITIONS[block.connector]
    return read_position(block.source, block.tx_seq, block.snapshot, offset, keyless)


def statement_position(block: SourceBlock, offset: int) -> EventPosition:
    """Of a truncate or a DDL statement."""
    if block.connector == "oracle" and block.snapshot == "none":
        return oracle_statement(block.source)
    return event_position(block, offset, False)


def _row_id(source: Mapping[str, Any]) -> str | None:
    row_id = source.get("row_id")
    return row_id if isinstance(row_id, str) else None


def _tx_id(connector: str, source: Mapping[str, Any], transaction: Mapping[str, Any] | None) -> str | None:
    """PostgreSQL appends a colon and a position, which differs for each event of a transaction."""
    tx_id = transaction.get("id") if transaction else None
    if isinstance(tx_id, str):
        return tx_id.partition(":")[0] if connector == "postgresql" else tx_id
    match connector:
        case "postgresql" | "oracle":
            tx_id = source.get("txId")
        case "sqlserver":
            tx_id = source.get("commit_lsn")
        case "mongodb":
            number = source.get("txnNumber")
            tx_id = None if number is None else f"{source.get('lsid')}:{number}"
        case _:
            tx_id = source.get("gtid")
    return str(tx_id) if isinstance(tx_id, str | int) else None


def _total_order(transaction: Mapping[str, Any] | None) -> int | None:
    order = transaction.get("total_order") if transaction else None
    if order is None:
        return None
    if type(order) is not int or not 0 <= order < 1 << 63:
        raise DecodeError(NO_ORDER, "the transaction block has an invalid total_order")
    return order


def _commit_time(connector: str, source: Mapping[str, Any]) -> datetime | None:
    """For display; None outside the years 1 to 9999. The position contains the original value."""
    if connector == "oracle" and type(source.get("commit_ts_ms")) is int:
        return datetime_of_us(source["commit_ts_ms"] * 1000)
    us = source.get("ts_us")
    if type(us) is int:
        return datetime_of_us(us)
    ms = source.get("ts_ms")
    return datetime_of_us(ms * 1000) if type(ms) is int else None


def position_of(payload: Mapping[str, Any], raw: str) -> str:
    """The envelope without its rows."""
    return _text_without_rows(raw) or dumps({name: value for name, value in payload.items() if name not in ROWS})


def _text_without_rows(raw: str) -> str | None:
    """The text of the envelope without its rows, which connectors write first; None if they are not first."""
    at = raw.find(SOURCE)
    if (
        at > 0
        and raw.find(SOURCE, at + 1) < 0
        and raw.find(AFTER, at) < 0
        and raw.find(BEFORE, at) < 0
        and raw[-1] == "}"
    ):
        return "{" + raw[at:]
    return None

"""An envelope's block of facts beside its rows: which table, which transaction, when, where. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.images import as_row
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us
from airflow_cdc_provider.connectors.decoders.debezium.positions import PLACES, EventPosition, snapshot_of

NAMES: Mapping[str, tuple[str, ...]] = {
    "mysql": ("db", "table"),
    "mariadb": ("db", "table"),
    "postgresql": ("schema", "table"),
    "sqlserver": ("db", "schema", "table"),
    "oracle": ("schema", "table"),
    "mongodb": ("db", "collection"),
}
"""Connector -> what a table's name is made of: what stands behind the prefix of its default topic."""

ROWS = ("before", "after")
PARTS = (*ROWS, "source", "op", "transaction")
SOURCE, BEFORE, AFTER = '"source":', '"before":', '"after":'


class SourceBlock(NamedTuple):
    """``position`` is the envelope as it came, without its rows. ``tx_seq``: place in the transaction."""

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
    """The connector and its block. Raises DecodeError."""
    source = as_row(payload.get("source"), "the source block")
    connector = source.get("connector")
    if not isinstance(connector, str) or connector not in PLACES:
        raise DecodeError(NO_ORDER, "the source block is of no connector that we know")
    return connector, source


def table_of(connector: str, source: Mapping[str, Any]) -> str:
    parts = [source.get(name) for name in NAMES[connector]]
    try:
        table = ".".join(parts)  # type: ignore[arg-type]
    except TypeError as error:
        raise DecodeError(WRONG_VALUE, "the source block does not name the table") from error
    if "" in parts:
        raise DecodeError(WRONG_VALUE, "the source block does not name the table")
    return table


def block_of(
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
        _committed(connector, source),
        position,
        source,
    )


def event_position(block: SourceBlock, offset: int, keyless: bool) -> EventPosition:
    place, _ = PLACES[block.connector]
    return place(block.source, block.tx_seq, block.snapshot, offset, keyless)


def _row_id(source: Mapping[str, Any]) -> str | None:
    told = source.get("row_id")
    return told if isinstance(told, str) else None


def _tx_id(connector: str, source: Mapping[str, Any], transaction: Mapping[str, Any] | None) -> str | None:
    """PostgreSQL's ids tell a place behind the colon, another one for each event of the transaction."""
    told = transaction.get("id") if transaction else None
    if isinstance(told, str):
        return told.partition(":")[0] if connector == "postgresql" else told
    match connector:
        case "postgresql" | "oracle":
            told = source.get("txId")
        case "sqlserver":
            told = source.get("commit_lsn")
        case "mongodb":
            number = source.get("txnNumber")
            told = None if number is None else f"{source.get('lsid')}:{number}"
        case _:
            told = source.get("gtid")
    return str(told) if isinstance(told, str | int) else None


def _total_order(transaction: Mapping[str, Any] | None) -> int | None:
    told = transaction.get("total_order") if transaction else None
    if told is None:
        return None
    if type(told) is not int or not 0 <= told < 1 << 63:
        raise DecodeError(NO_ORDER, "the transaction block has no total_order that is a place")
    return told


def _committed(connector: str, source: Mapping[str, Any]) -> datetime | None:
    """For display. A time that no calendar has is left out; the position keeps it."""
    if connector == "oracle" and type(source.get("commit_ts_ms")) is int:
        return moment_of_us(source["commit_ts_ms"] * 1000)
    us = source.get("ts_us")
    if type(us) is int:
        return moment_of_us(us)
    ms = source.get("ts_ms")
    return moment_of_us(ms * 1000) if type(ms) is int else None


def position_of(payload: Mapping[str, Any], raw: str) -> str:
    """The envelope without its rows."""
    return cut_off(raw) or dumps({name: value for name, value in payload.items() if name not in ROWS})


def cut_off(raw: str) -> str | None:
    """The same, as it stands in the text: connectors write the rows first. None where they did not."""
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

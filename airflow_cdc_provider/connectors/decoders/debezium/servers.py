"""The servers that messages of Debezium's connectors for MySQL, MariaDB and PostgreSQL come from, by their source
blocks. Pure.

A server of PostgreSQL is not named, and its numbers are the times of its commits. Its position is the end of the
previous transaction: the LSN of a row is lower than that of a row of an earlier transaction if both were open at a
time. Only the first transaction of a connector without offsets has no such end.

In files, which have no common order, the channel is that of all files: they are read by age.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.connectors.decoders.debezium.positions import (
    file_digits,
    read_number,
    sequence_of,
    snapshot_of,
)
from airflow_cdc_provider.connectors.decoders.debezium.snapshots import SOURCE
from airflow_cdc_provider.connectors.decoders.debezium.source_block import table_of
from airflow_cdc_provider.core.log.server_orders import OrderOfMessages, ServerOrder, origin_of

CONNECTOR = re.compile(rb'"connector"\s*:\s*"(?:mysql|mariadb|postgresql)"')
WAL = re.compile(
    rb'"connector":"postgresql","name":"([^"\\]*)","ts_ms":(\d{1,18}),"snapshot":"false","db":"([^"\\]*)",'
    rb'"sequence":"\[\\"([1-9]\d{0,18})\\",\\"\d{1,19}\\"\]"[^{}\\]*?,"schema":"([^"\\]+)","table":"([^"\\]+)"'
)
"""A change of PostgreSQL as current connectors write it, which need not be parsed: these are most of all messages."""
GTID = re.compile(r"(.+)[:-](\d{1,19})")
"""`server:number`, with a tag between them or without; of MariaDB `domain-server-number`."""
FIELDS = (
    *("connector", "name", "db", "schema", "table", "snapshot", "ts_ms"),
    *("file", "pos", "gtid", "server_id", "sequence", "lsn", "txId"),
)


class _LogPosition(NamedTuple):
    """As in ``OrderOfMessages``. ``start``: the transaction, if it has no position because the connector started with
    it."""

    server: str
    number: int
    at: str
    start: str = ""


def _in_binlog(source: Mapping[str, Any]) -> _LogPosition:
    at = f"{file_digits(source.get('file'))}{read_number(source, 'pos', 16):016x}"
    base = str(source["file"]).rpartition(".")[0]
    gtid = GTID.fullmatch(str(source.get("gtid") or ""))
    server, number = (gtid[1], int(gtid[2])) if gtid else (f"server {source.get('server_id')}", int(at, 16))
    return _LogPosition(f"{server} ({base})", number, at)


def _in_wal(source: Mapping[str, Any]) -> _LogPosition | None:
    """None for a connector that does not send ends of transactions."""
    if source.get("sequence") is None:
        return None
    previous, _ = sequence_of(source)
    server, number = origin_of(source), read_number(source, "ts_ms", 16)
    return _LogPosition(server, number, f"{previous:016x}", "" if previous else f"{source.get('txId')} at {number}")


READ_POSITION: Mapping[str, Callable[[Mapping[str, Any]], _LogPosition | None]] = {
    "mysql": _in_binlog,
    "mariadb": _in_binlog,
    "postgresql": _in_wal,
}


def _same_in_transaction(source: Mapping[str, Any]) -> dict[str, Any]:
    """What the rows of a transaction in a table of PostgreSQL have in common."""
    if source.get("connector") != "postgresql" or source.get("sequence") is None:
        return dict(source)
    end_before = str(source["sequence"]).partition(",")[0]
    return {name: value for name, value in source.items() if name != "lsn"} | {"sequence": end_before}


class Servers:
    """``copied_table``: the name of the copy of a table, empty if it is not copied."""

    def __init__(self, copied_table: Callable[[str], str]) -> None:
        self._copied_table = copied_table
        self._orders: dict[tuple[str, str], OrderOfMessages] = {}
        self._names: dict[tuple[bytes, bytes], str] = {}
        self._servers: dict[tuple[bytes, bytes], str] = {}

    @property
    def orders(self) -> tuple[ServerOrder, ...]:
        return tuple(one.order for one in self._orders.values())

    def observe(self, message: Message) -> None:
        at = message.value.rfind(SOURCE) if message.value else -1
        if message.value is None or at < 0:
            return
        block = message.value[at + len(SOURCE) : message.value.find(b"}", at) + 1]
        if block.isascii() and (found := WAL.search(block)):
            self._add_in_wal(message, found)
        elif CONNECTOR.search(block):
            try:
                source = exact_json.parse_text(exact_json.text_of(block.strip()))
            except DecodeError:  # the decoder reports it
                return
            if isinstance(source, dict):
                self._add(message, source)

    def observe_columns(self, columns: MessageColumns) -> None:
        if columns.values.type.get_field_index("source") < 0:
            return
        block = columns.values.field("source")
        names = [name for name in FIELDS if block.type.get_field_index(name) >= 0]
        values = [block.field(name).to_pylist() for name in names]
        if "connector" not in names or values[0][0] not in READ_POSITION:
            return
        before: dict[str, dict[str, Any]] = {}
        for message, row in zip(columns.messages, zip(*values, strict=True), strict=True):
            source = dict(zip(names, row, strict=True))
            same = _same_in_transaction(source)
            if before.get(message.channel) != same:
                before[message.channel] = same
                self._add(message, source)

    def _add_in_wal(self, message: Message, found: re.Match[bytes]) -> None:
        name, at_ms, database, previous, schema, table = found.groups()
        names, server = (schema, table), (name, database)
        if names not in self._names:
            source = {"schema": schema.decode(), "table": table.decode()}
            self._names[names] = self._copied_table(table_of("postgresql", source))
        if server not in self._servers:
            self._servers[server] = origin_of({"name": name.decode(), "db": database.decode()})
        if copied := self._names[names]:
            position = _LogPosition(self._servers[server], int(at_ms), f"{int(previous):016x}")
            self._add_position(message, copied, position, position.server)

    def _add(self, message: Message, source: Mapping[str, Any]) -> None:
        read_position = READ_POSITION.get(str(source.get("connector")))
        if snapshot_of(source, "") != "none" or read_position is None or not source.get("table"):
            return
        try:
            table = self._copied_table(table_of(source["connector"], source))
            position = read_position(source) if table else None
        except DecodeError:
            return
        if position is not None:
            self._add_position(message, table, position, origin_of(source))

    def _add_position(self, message: Message, table: str, position: _LogPosition, origin: str) -> None:
        channel = message.channel if message.at_ms else ""
        order = self._orders.get((channel, table))
        if order is None:
            order = OrderOfMessages(channel, table, message.offset if channel else 0)
            self._orders[channel, table] = order
        order.origins.add(origin)
        if position.start:
            order.add_start(position.server, position.start)
        else:
            order.add(position.server, position.number, position.at)

"""The servers that messages of Debezium's connectors for MySQL and MariaDB come from, by their source blocks. Pure.

In files, which have no common order, the channel is that of all files: they are read by age.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.connectors.decoders.debezium.positions import file_digits, read_number, snapshot_of
from airflow_cdc_provider.connectors.decoders.debezium.snapshots import SOURCE
from airflow_cdc_provider.connectors.decoders.debezium.source_block import table_of
from airflow_cdc_provider.core.log.server_orders import OrderOfMessages, ServerOrder

CONNECTOR = re.compile(rb'"connector"\s*:\s*"(?:mysql|mariadb)"')
CONNECTORS = ("mysql", "mariadb")
GTID = re.compile(r"(.+)[:-](\d{1,19})")
"""`server:number`, with a tag between them or without; of MariaDB `domain-server-number`."""
FIELDS = ("connector", "db", "table", "snapshot", "file", "pos", "gtid", "server_id")


class Servers:
    """``copied_table``: the name of the copy of a table, empty if it is not copied."""

    def __init__(self, copied_table: Callable[[str], str]) -> None:
        self._copied_table = copied_table
        self._orders: dict[tuple[str, str], OrderOfMessages] = {}

    @property
    def orders(self) -> tuple[ServerOrder, ...]:
        return tuple(one.order for one in self._orders.values())

    def observe(self, message: Message) -> None:
        at = message.value.rfind(SOURCE) if message.value else -1
        if message.value is None or at < 0:
            return
        block = message.value[at + len(SOURCE) : message.value.find(b"}", at) + 1]
        if CONNECTOR.search(block):
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
        if "connector" not in names or values[0][0] not in CONNECTORS:
            return
        for message, row in zip(columns.messages, zip(*values, strict=True), strict=True):
            self._add(message, dict(zip(names, row, strict=True)))

    def _add(self, message: Message, source: Mapping[str, Any]) -> None:
        if snapshot_of(source, "") != "none" or not source.get("table"):
            return
        try:
            table = self._copied_table(table_of("mysql", source))
            at = f"{file_digits(source.get('file'))}{read_number(source, 'pos', 16):016x}"
        except DecodeError:
            return
        if not table:
            return
        base = str(source["file"]).rpartition(".")[0]
        gtid = GTID.fullmatch(str(source.get("gtid") or ""))
        server, number = (gtid[1], int(gtid[2])) if gtid else (f"server {source.get('server_id')}", int(at, 16))
        channel = message.channel if message.at_ms else ""
        order = self._orders.get((channel, table))
        if order is None:
            order = OrderOfMessages(channel, table, message.offset if channel else 0)
            self._orders[channel, table] = order
        order.add(f"{server} ({base})", number, at)

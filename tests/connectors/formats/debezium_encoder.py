"""Encodes a simulated history as Debezium's connectors do, from an independent reading of their format."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any
from zlib import crc32

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.connectors.formats.simulator import COLUMNS, Change, History, Row

PARTITIONS = 3
FIELDS = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "name"},
    {
        "type": "bytes",
        "optional": True,
        "field": "amount",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    {"type": "int64", "optional": True, "field": "at", "name": "io.debezium.time.MicroTimestamp", "version": 1},
    {"type": "string", "optional": True, "field": "wide"},
]
NATIVES = (
    (Kind.INT32, "int32"),
    (Kind.TEXT, "string"),
    (Kind.DECIMAL, "bytes org.apache.kafka.connect.data.Decimal(scale=2,connect.decimal.precision=10)"),
    (Kind.TIMESTAMP, "int64 io.debezium.time.MicroTimestamp"),
    (Kind.TEXT, "string"),
)
UNKNOWN = "__debezium_unavailable_value"
TABLES = {
    "mysql": "d.t",
    "mariadb": "d.t",
    "postgresql": "s.t",
    "sqlserver": "d.s.t",
    "oracle": "s.t",
    "mongodb": "d.t",
}


@dataclass(frozen=True)
class ConnectorSetup:
    """How a connector is configured, and which parts of its messages are present."""

    connector: str
    schemas: bool
    transactions: bool
    headers: bool
    keyless: bool = False
    unwrapped: bool = False

    @property
    def table(self) -> TableSchema:
        kinds = [LogicalType(Kind.DECIMAL, 10, 2) if kind is Kind.DECIMAL else LogicalType(kind) for kind, _ in NATIVES]
        columns = (
            Column(name, kind, name != "id", native)
            for name, kind, (_, native) in zip(COLUMNS, kinds, NATIVES, strict=True)
        )
        regime = Regime.DOUBLE if self.connector == "oracle" else Regime.SINGLE
        return TableSchema(TABLES[self.connector], tuple(columns), () if self.keyless else ("id",), regime)


class DebeziumEncoder:
    def __init__(self, setup: ConnectorSetup, random: Random) -> None:
        self._setup = setup
        self._random = random
        self._offsets = [0] * PARTITIONS

    def messages(self, history: History) -> Iterator[Message]:
        for row in history.start:
            yield self._message("r", None, row, self._copied(), row[0])
        for change in history.changes:
            yield from self._change(change)

    def _change(self, change: Change) -> Iterator[Message]:
        old, new = change.old, change.new
        moves = change.moved and not self._setup.keyless
        if old is not None and (new is None or moves):
            link = (("__debezium.newkey", json.dumps({"id": new[0]}).encode()),) if new else ()
            yield self._message(
                "d", old, None, change, old[0], self._seq(change, 0), link if self._setup.headers else ()
            )
            yield self._sent(old[0], None)
            if new is not None:
                link = (("__debezium.oldkey", json.dumps({"id": old[0]}).encode()),)
                yield self._message(
                    "c", None, new, change, new[0], self._seq(change, 1), link if self._setup.headers else ()
                )
        elif new is not None:
            yield self._message("c" if old is None else "u", old, new, change, new[0], self._seq(change, 0))

    def _seq(self, change: Change, half: int) -> int:
        return change.seq * 2 + half

    def _copied(self) -> Change:
        return Change(None, None, 0, position=500, statement=500, commit=500)

    def _message(
        self,
        op: str,
        old: Row | None,
        new: Row | None,
        change: Change,
        key: int,
        seq: int = 0,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> Message:
        at_us = 1_700_000_000_000_000 + self._random.randrange(10**9)  # the clock of the source does not order changes
        body: dict[str, Any] = {
            "before": self._before(op, change, old),
            "after": self._after(op, change, new),
            "source": {**self._source(op, change), "ts_ms": at_us // 1000, "ts_us": at_us},
            "transaction": None,
            "op": op,
            "ts_ms": 1_700_000_000_000 + sum(self._offsets),
        }
        if self._setup.transactions and op != "r":
            body["transaction"] = {
                "id": f"{change.tx}:{change.position}",
                "total_order": seq,
                "data_collection_order": seq,
            }
        if self._setup.unwrapped:
            return self._unwrapped(op, new or old, key)
        if self._setup.schemas:
            rows = [{"type": "struct", "fields": FIELDS, "optional": True, "field": n} for n in ("before", "after")]
            body = {"schema": {"type": "struct", "fields": rows, "optional": False}, "payload": body}
        return self._sent(key, body, headers)

    def _unwrapped(self, op: str, row: Row | None, key: int) -> Message:
        """A delete is a row with a mark."""
        assert row is not None
        encoded = encoded_row(row) if op != "d" else {**dict.fromkeys(COLUMNS), "id": row[0]}
        return self._sent(key, {**encoded, "__op": op, "__deleted": "true" if op == "d" else "false"})

    def _sent(self, key: int, body: Any, headers: tuple[tuple[str, bytes], ...] = ()) -> Message:
        encoded: Any = {"id": key}
        if self._setup.schemas:
            encoded = {"schema": {"type": "struct", "fields": FIELDS[:1], "optional": False}, "payload": encoded}
        text = None if self._setup.keyless else json.dumps(encoded).encode()
        partition = crc32(text or b"") % PARTITIONS
        self._offsets[partition] += 1
        value = None if body is None else json.dumps(body).encode()
        return Message(value, text, headers, "p.t", f"p.t/{partition}", self._offsets[partition])

    def _before(self, op: str, change: Change, old: Row | None) -> Any:
        if old is None or op in ("c", "r"):
            return None
        if self._setup.connector != "postgresql" or self._setup.keyless:
            return self._without_unchanged(encoded_row(old), op, change)
        return {**dict.fromkeys(COLUMNS), "id": old[0]} if op == "d" else None

    def _after(self, op: str, change: Change, new: Row | None) -> Any:
        """PostgreSQL does not repeat an unchanged TOAST value."""
        if new is None:
            return None
        encoded = self._without_unchanged(encoded_row(new), op, change)
        unchanged = change.old is not None and change.old[4] == new[4] and new[4] is not None
        if self._setup.connector == "postgresql" and op in ("u", "c") and unchanged:
            encoded["wide"] = UNKNOWN
        return encoded

    def _without_unchanged(self, row: dict[str, Any], op: str, change: Change) -> dict[str, Any]:
        """SQL Server sends no unchanged value of a large type: null, or a placeholder from version 3.6 on."""
        if self._setup.connector != "sqlserver" or op != "u" or change.old is None or change.new is None:
            return row
        return {**row, "wide": UNKNOWN if self._setup.headers else None} if change.old[4] == change.new[4] else row

    def _source(self, op: str, change: Change) -> dict[str, Any]:
        copied = op == "r"
        block: dict[str, Any] = {
            "version": "3",
            "connector": self._setup.connector,
            "name": "p",
            "db": "d",
            "schema": "s",
        }
        block |= {"table": "t", "snapshot": "true" if copied else "false", "sequence": None}
        match self._setup.connector:
            case "mysql" | "mariadb":
                # one transaction after the other: the binary log has them in the order of their commits
                pos = change.commit * 1000 + change.seq - change.ordinal
                block |= {"file": f"binlog.{999_990 + pos // 100_000:06d}", "pos": pos % 100_000, "row": change.ordinal}
            case "postgresql":
                last = str(change.commit_before) if change.commit_before else None
                block |= {
                    "sequence": json.dumps([last, str(change.position)]),
                    "lsn": change.position,
                    "txId": change.tx,
                }
            case "sqlserver":
                block |= {"commit_lsn": _lsn(change.commit), "change_lsn": None if copied else _lsn(change.position)}
                block |= {"event_serial_no": None if copied else 2 if op == "u" else 1}
            case "oracle":
                block |= {"scn": str(change.position), "commit_scn": None if copied else str(change.commit), "ssn": 0}
                block |= {"rs_id": f" 0x{change.position:06x}.{change.ordinal:08x}.0000 ", "txId": f"{change.tx:x}"}
                block |= {"row_id": None if copied else f"AAA{change.row_id}"}
        return block


def encoded_row(row: Row) -> dict[str, Any]:
    key, name, amount, at, wide = row
    cents = None if amount is None else int(amount.scaleb(2))
    digits = None if cents is None else cents.to_bytes(8, "big", signed=True)
    micros = None if at is None else (at - datetime(1970, 1, 1)) // (datetime.resolution)
    encoded_amount = None if digits is None else b64encode(digits).decode()
    return {"id": key, "name": name, "amount": encoded_amount, "at": micros, "wide": wide}


def _lsn(place: int) -> str:
    return f"{0:08x}:{place >> 4:08x}:{place & 15:04x}"

"""Encodes a simulated history as YDB's changefeeds do, from an independent reading of their formats. Keys never
change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors.formats.simulator import Change, History, Row

TOPIC, PARTITIONS = "t/feed", 3
TABLE = TableSchema(
    "t",
    (
        Column("id", LogicalType(Kind.INT64), True, "Int64"),
        Column("name", LogicalType(Kind.TEXT), True, "Utf8"),
        Column("amount", LogicalType(Kind.DECIMAL, 10, 2), True, "Decimal(10,2)"),
        Column("at", LogicalType(Kind.TIMESTAMPTZ), True, "Timestamp"),
        Column("wide", LogicalType(Kind.TEXT), True, "Utf8"),
    ),
    ("id",),
)


@dataclass(frozen=True)
class Feed:
    form: str
    mode: str
    timestamps: bool = True


class YdbEncoder:
    def __init__(self, feed: Feed, random: Random) -> None:
        self._feed = feed
        self._random = random
        self._offsets = [0] * PARTITIONS

    def messages(self, history: History) -> Iterator[Message]:
        """The changes of a key in one transaction are one change; it is an update whatever happened in between."""
        for row in history.start:
            yield self._encoded(None, row, 1, 0, scanned=True)
        for transaction in history.transactions:
            for old, new, change in _collapsed(transaction):
                yield self._encoded(old, new, change.commit, change.tx)

    def _encoded(self, old: Row | None, new: Row | None, step: int, tx: int, scanned: bool = False) -> Message:
        row = new or old
        assert row is not None
        form = {"json": self._json, "debezium": self._debezium, "dynamodb": self._dynamo}[self._feed.form]
        body, key = form(old, new, step, tx, scanned)
        partition = crc32(str(row[0]).encode()) % PARTITIONS
        self._offsets[partition] += self._random.choice((1, 1, 1))
        encoded_key = None if key is None else json.dumps(key).encode()
        return Message(
            json.dumps(body).encode(), encoded_key, (), TOPIC, f"{TOPIC}/{partition}", self._offsets[partition]
        )

    def _json(self, old: Row | None, new: Row | None, step: int, tx: int, scanned: bool) -> tuple[Any, Any]:
        row = new or old
        assert row is not None
        body: dict[str, Any] = {"key": [row[0]]}
        mode = self._feed.mode
        if new is None:
            body["erase"] = {}
        elif mode == "UPDATES" or (scanned and mode in ("KEYS_ONLY", "OLD_IMAGE")):
            body |= self._given(old, new)
        else:
            body[self._random.choice(("update", "reset"))] = {}
            if mode in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
                body["newImage"] = _columns(new)
        if old is not None and mode in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES"):
            body["oldImage"] = _columns(old)
        if self._feed.timestamps:
            body["ts"] = [step, tx]
        return body, None

    def _given(self, old: Row | None, new: Row) -> dict[str, Any]:
        """The changed columns, or all that are not NULL, with the others reset."""
        now = _columns(new)
        if old is None or self._random.random() < 0.3:
            return {"reset": {name: value for name, value in now.items() if value is not None}}
        was = _columns(old)
        return {"update": {name: value for name, value in now.items() if value != was[name]}}

    def _debezium(self, old: Row | None, new: Row | None, step: int, tx: int, scanned: bool) -> tuple[Any, Any]:
        row = new or old
        assert row is not None
        payload: dict[str, Any] = {"op": "r" if scanned else "d" if new is None else "u" if old else "c"}
        source = {"version": "1.0.0", "connector": "ydb", "ts_ms": step, "snapshot": scanned, "step": step, "txId": tx}
        payload["source"] = source
        if old is not None:
            payload["before"] = {"id": old[0], **_columns(old)}
        if new is not None:
            payload["after"] = {"id": new[0], **_columns(new)}
        return {"payload": payload}, {"payload": {"id": row[0]}}

    def _dynamo(self, old: Row | None, new: Row | None, step: int, tx: int, scanned: bool) -> tuple[Any, Any]:
        row = new or old
        assert row is not None
        body: dict[str, Any] = {"SequenceNumber": f"{step * 1000 + tx:021d}", "Keys": {"id": {"N": str(row[0])}}}
        body |= {name: _tagged(one) for name, one in (("NewImage", new), ("OldImage", old)) if one is not None}
        name = "REMOVE" if new is None else "MODIFY" if old else "INSERT"
        return {"eventName": name, "eventID": f"1-{step}-{row[0]}", "dynamodb": body}, None


def _collapsed(transaction: list[Change]) -> Iterator[tuple[Row | None, Row | None, Change]]:
    by_key: dict[int, tuple[Row | None, Row | None, Change]] = {}
    for change in transaction:
        row = change.new or change.old
        assert row is not None
        first = by_key[row[0]][0] if row[0] in by_key else change.old
        by_key[row[0]] = (first, change.new, change)
    return ((old, new, change) for old, new, change in by_key.values() if old or new)


def _columns(row: Row) -> dict[str, Any]:
    _, name, amount, at, wide = row
    moment = None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"name": name, "amount": None if amount is None else str(amount), "at": moment, "wide": wide}


def _tagged(row: Row) -> dict[str, Any]:
    """Attributes that are NULL are omitted."""
    encoded: dict[str, Any] = {name: {"S": value} for name, value in _columns(row).items() if value is not None}
    if "amount" in encoded:
        encoded["amount"] = {"N": encoded["amount"]["S"]}
    return {"id": {"N": str(row[0])}, **encoded}

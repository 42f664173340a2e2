"""Encodes a simulated history as Debezium's connector for MongoDB does. Keys never change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats.simulator import Change, History, Row


def messages(history: History, random: Random, looked_up: bool) -> Iterator[Message]:
    """``looked_up``: updates contain the document, else only the changed fields."""
    for number, row in enumerate(history.start):
        yield _message("r", row[0], None, row, None, number)
    for number, change in enumerate(history.changes, len(history.start)):
        old, new = change.old, change.new
        row = new or old
        assert row is not None
        op = "d" if new is None else "u" if old else "c"
        yield _message(op, row[0], old, new if op != "u" or looked_up else None, change, number)


def document(row: Row) -> str:
    """Extended JSON, as text."""
    key, name, amount, at, wide = row
    encoded: dict[str, Any] = {
        "_id": key,
        "name": name,
        "amount": None if amount is None else {"$numberDecimal": str(amount)},
    }
    return json.dumps({**encoded, "at": None if at is None else {"$date": at.isoformat()}, "wide": wide})


def _message(op: str, key: int, old: Row | None, new: Row | None, change: Change | None, offset: int) -> Message:
    source = {"connector": "mongodb", "db": "d", "collection": "t", "snapshot": "false" if change else "true"}
    source |= {"ts_ms": (change.commit if change else 0) * 1000, "ord": change.seq if change else 0}
    body: dict[str, Any] = {"before": None, "after": None if new is None else document(new), "source": source, "op": op}
    if op == "u":
        body["updateDescription"] = {"updatedFields": "{}", "removedFields": None, "truncatedArrays": None}
    encoded_key = json.dumps({"id": str(key)}).encode()
    return Message(json.dumps(body).encode(), encoded_key, (), "p.d.t", "p.d.t/0", offset)

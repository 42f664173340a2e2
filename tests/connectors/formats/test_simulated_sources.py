"""A simulated source, told in every format, folded: the copy is what the source holds.

``CDC_HISTORIES`` says how many histories of each; ``CDC_SEED`` plays them again.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.formats.message import Message, Setting, Wanted
from airflow_cdc_provider.core.changes import ChangeRecord, Operation
from airflow_cdc_provider.core.definition import TableRule
from airflow_cdc_provider.core.tables import TableSchema
from tests.connectors.formats.debezium_encoder import DebeziumEncoder, Manner
from tests.connectors.formats.folded import in_order
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.simulator import COLUMNS, Change, History, Row, Simulator
from tests.model import seeds

HISTORIES = seeds.histories(40)
TRANSACTIONS = 8


def told(row: Row, zone: str = "") -> dict[str, Any]:
    """A row as the change log has it."""
    key, name, amount, at, wide = row
    moment = None if at is None else at.isoformat() + zone
    return {"id": key, "name": name, "amount": None if amount is None else str(amount), "at": moment, "wide": wide}


def setting(schema: TableSchema, **options: Any) -> Setting:
    return Setting(1, {schema.table: Wanted(TableRule(schema.table), schema)}, options)


def decoded(kind: str, setting: Setting, messages: list[Message]) -> list[ChangeRecord]:
    made = decoder(kind, setting)
    found = [record for message in messages for record in records(made.decode(message))]
    bad = [record.after for record in found if record.op == Operation.UNREADABLE]
    assert bad == []
    return found


def halves(changes: list[Change]) -> list[tuple[str, int]]:
    """What happened, in the order in which it became true: which key went or came."""
    found = []
    for change in changes:
        if change.old and (change.new is None or change.moved):
            found.append(("went", change.old[0]))
        if change.new:
            found.append(("came", change.new[0]))
    return found


def order_of(found: list[ChangeRecord]) -> list[tuple[str, int]]:
    streamed = sorted((one for one in found if one.snapshot == "none"), key=lambda one: one.order_key)
    return [
        ("went", json.loads(one.key_before or "")[0])
        if one.op == Operation.DELETE
        else ("came", json.loads(one.key or "")[0])
        for one in streamed
    ]


def end(history: History, zone: str = "") -> dict[str, dict[str, Any]]:
    return {f"[{key}]": told(row, zone) for key, row in history.end.items()}


MANNERS = [
    Manner(connector, schemas, transactions, headers)
    for connector in ("mysql", "mariadb", "postgresql", "sqlserver", "oracle")
    for schemas, transactions, headers in ((True, True, True), (False, True, False), (False, False, False))
]


@pytest.mark.parametrize("manner", MANNERS, ids=str)
def test_debezium_told_and_folded_is_the_source(manner: Manner) -> None:
    seed = seeds.seed()
    for number in range(HISTORIES):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=manner.connector == "oracle").history(TRANSACTIONS)
        messages = list(DebeziumEncoder(manner, random).messages(history))
        random.shuffle(messages)
        told_setting = setting(manner.table, full_before=manner.connector == "oracle", topic_prefix="p")
        found = decoded("debezium", told_setting, messages)
        why = f"CDC_SEED={seed}, history {number}"
        assert order_of(found) == halves(history.changes), why
        assert in_order([*found, *found], COLUMNS) == end(history), why

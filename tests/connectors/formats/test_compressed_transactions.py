"""MySQL with ``binlog_transaction_compression``: the changes of a transaction are in one event of the log, and those
inside have no position. Debezium gives all of them the position of that event, and counts the rows of each from 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.definition import TableRule
from tests.connectors.formats.debezium_messages import S, envelope, message, mysql
from tests.connectors.formats.decoded import records_of
from tests.connectors.formats.folded import in_order
from tests.connectors.formats.golden import decoder

TABLE = replace(S, table="shop.t")
ROWS = 40
"""Enough for a block of each kind of change."""
TRANSACTIONS = {
    "inserted and deleted": ["c-a", "da-"],
    "inserted and updated": ["c-a", "uab"],
    "replaced": ["da-", "c-b"],
    "replaced and deleted": ["da-", "c-b", "db-"],
}
"""Operation, value before and value after."""


def messages(name: str, numbered: bool, by_line: bool = False) -> list[Message]:
    """The statements, each of which changes all rows."""
    source = mysql(420, file="b.000003", gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:7")
    changes = [(change, key) for change in TRANSACTIONS[name] for key in range(ROWS)]
    return [
        message(
            envelope(op, row(key, old), row(key, new), {**source, "row": key}, number if numbered else None),
            {"id": key},
            "m.shop.t",
            1000 + number,
            by_line=by_line,
        )
        for number, ((op, old, new), key) in enumerate(changes, 1)
    ]


def row(key: int, value: str) -> dict[str, Any] | None:
    return None if value == "-" else {"id": key, "v": value, "at": None}


def decoded(sent: list[Message], together: bool) -> list[ChangeRecord]:
    made = decoder("debezium", DecoderSettings(1, {"shop.t": CopiedTable(TableRule("shop.t"), TABLE)}))
    return sorted(records_of(made, sent, together), key=lambda one: one.order_key)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_changes_at_one_position_are_applied_in_the_order_of_their_transaction(
    name: str, numbered: bool, together: bool
) -> None:
    found = decoded(messages(name, numbered), together)
    rows = in_order([*found, *found], TABLE.names)
    end = TRANSACTIONS[name][-1][-1]
    assert list(rows.values()) == [row(key, end) for key in range(ROWS) if end != "-"]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_changes_at_one_position_that_nothing_orders_have_one_order_key_and_stop_their_table(
    name: str, together: bool
) -> None:
    found = decoded(messages(name, numbered=False, by_line=True), together)
    assert len({one.order_key for one in found}) == ROWS
    assert len({(one.order_key, one.op, one.after) for one in found}) > ROWS


@pytest.mark.parametrize("together", [False, True])
def test_lines_of_a_file_with_transaction_metadata_are_ordered_by_it(together: bool) -> None:
    found = decoded(messages("inserted and deleted", numbered=True, by_line=True), together)
    assert in_order(found, TABLE.names) == {}

"""Messages of a real Debezium about the changes in ``tests/debezium``, decoded and folded, give the rows of the source.

``python -m tests.debezium.record`` records them again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Item
from airflow_cdc_provider.connectors.decoders.common.saved_messages import read_messages
from airflow_cdc_provider.connectors.decoders.debezium.statements import payloads_of, read_statements
from airflow_cdc_provider.connectors.decoders.debezium.table_history import table_histories
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors.formats.folded import in_order
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.invariants import require_valid
from tests.debezium import mariadb_changes, postgres_changes
from tests.debezium.plain import row
from tests.debezium.record import RECORDED

CHANGING = ("public.changing", "shop.changing")
PREFIXES = {"postgres": postgres_changes.PREFIX, "mariadb": mariadb_changes.PREFIX}


def decoded(name: str, schemas: Iterable[TableSchema] = ()) -> list[Item]:
    known = {schema.table: CopiedTable(TableRule(schema.table), schema) for schema in schemas}
    reader = decoder("debezium", DecoderSettings(1, known or None, {"topic_prefix": PREFIXES[name.partition("_")[0]]}))
    items: list[Item] = []
    for message in read_messages((RECORDED / f"{name}.jsonl.gz").read_bytes(), name, "", False):
        found = reader.decode(message)
        require_valid(message, found)
        items += found
    return items


def schemas_of(items: Iterable[Item]) -> dict[str, TableSchema]:
    """The latest schema of each table with a row."""
    rows = {item.table for item in items if isinstance(item, ChangeRecord) and item.op == Operation.READ}
    return {item.table: item for item in items if isinstance(item, TableSchema) and item.table in rows}


def end(source: str) -> dict[str, list[dict[str, str | None]]]:
    rows: dict[str, list[dict[str, str | None]]] = json.loads((RECORDED / f"{source}_end.json").read_text())
    return rows


def copied(found: list[ChangeRecord], schema: TableSchema) -> list[dict[str, Any]]:
    mine = [record for record in found if record.table == schema.table]
    return folded(mine, schema) if schema.key else counted(mine)


def folded(found: list[ChangeRecord], schema: TableSchema) -> list[dict[str, Any]]:
    rows = in_order([*found, *found], schema.names)
    return sorted(({name: one[name] for name in schema.names} for one in map(row, rows.values())), key=str)


def counted(found: list[ChangeRecord]) -> list[dict[str, Any]]:
    rows = Counter(record.after for record in found if record.after)
    rows.subtract(record.before for record in found if record.before)
    return sorted((row(json.loads(text)) for text in rows.elements()), key=str)


@pytest.mark.parametrize("source", PREFIXES)
def test_with_schemas_in_the_messages_every_copy_equals_the_source(source: str) -> None:
    items = decoded(source)
    assert [record.after for record in records(items) if record.op == Operation.UNREADABLE] == []
    schemas = schemas_of(items)
    assert schemas.keys() == end(source).keys()
    for table, rows in end(source).items():
        assert copied(records(items), schemas[table]) == sorted(rows, key=str), table


@pytest.mark.parametrize("recorded", ["mariadb_11", "mariadb_11_unnumbered"])
def test_changes_with_one_position_are_applied_in_the_order_of_their_transaction(recorded: str) -> None:
    """MariaDB 11.8 gives no offsets inside a transaction. Unnumbered: without transaction metadata."""
    items = decoded(recorded)
    schemas = schemas_of(items)
    for table, rows in end("mariadb").items():
        assert copied(records(items), schemas[table]) == sorted(rows, key=str), table


@pytest.mark.parametrize("source", PREFIXES)
def test_without_schemas_in_the_messages_described_tables_equal_the_source(source: str) -> None:
    """A row with an undescribed column is unreadable."""
    schemas = schemas_of(decoded(source))
    items = records(decoded(f"{source}_bare", schemas.values()))
    unreadable = [record for record in items if record.op == Operation.UNREADABLE]
    assert {record.table for record in unreadable} <= set(CHANGING)
    assert {what.reason[:6] for record in unreadable if (what := undecoded(record))} == {"EVT014"}
    for table, rows in end(source).items():
        if table not in CHANGING:
            assert copied(items, schemas[table]) == sorted(rows, key=str), table


def test_decimals_sent_as_numbers_are_the_same_decimals() -> None:
    found = records(decoded("postgres_numeric"))
    assert [record.after for record in found if record.op == Operation.UNREADABLE] == []
    schemas = schemas_of(decoded("postgres"))
    for table, rows in end("postgres").items():
        assert copied(found, schemas[table]) == sorted(rows, key=str), table


def test_the_recordings_contain_every_kind_of_change() -> None:
    """Otherwise the other tests prove less than they seem to."""
    kinds = Counter(record.op for source in PREFIXES for record in records(decoded(source)))
    assert {Operation.READ, Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.TRUNCATE} <= kinds.keys()
    messages = [record for record in records(decoded("mariadb")) if record.op == Operation.MESSAGE]
    assert {"schema", "statement"} <= {json.loads(record.after or "{}").get("kind") for record in messages}
    moved = [record for record in records(decoded("postgres")) if record.link_id]
    assert any(record.after and "wide" not in json.loads(record.after) for record in moved), "a move that keeps TOAST"


RENAMES = [
    ("shop.t", None, {}),
    ("shop.t", "shop.t", {"v": "v2"}),
    ("shop.t", "shop.t", {"v2": "v3"}),
    ("shop.t", "shop.t", {"V3": "v 4"}),
    ("shop.t2", "shop.t", {}),
    ("shop.shadow", None, {}),
    ("shop.t2_old", "shop.t2", {}),
    ("shop.t2", "shop.shadow", {}),
    ("shop.t2_old", None, {}),
    ("shop.t3", "shop.t2", {}),
    ("shop.t 4", "shop.t3", {"v 4": "v5"}),
    ("other.t5", None, {}),
    ("shop.t6", "other.t5", {}),
    ("shop.t6", "shop.t6", {}),
    ("shop.t6", "shop.t6", {}),
]
"""Table, former name, renamed columns, by the statements in ``tests/debezium/renames.py``. A name without a database
cannot be resolved if the table moves to another one."""


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_statements_contain_former_names(kind: str) -> None:
    name = f"{kind}_renames"
    messages = [*read_messages((RECORDED / f"{name}.jsonl.gz").read_bytes(), name, "", False)]
    statements = read_statements(payloads_of(messages))
    assert [(one.table, one.previous, one.renamed) for one in statements if "first" not in one.table] == RENAMES
    histories = [[version.table for version in history.versions] for history in table_histories(statements)]
    assert sorted(histories) == [
        ["other.t5", "shop.t6", "shop.t6", "shop.t6"],
        ["shop.first"],
        ["shop.shadow", "shop.t2", "shop.t3", "shop.t 4"],
        ["shop.t", "shop.t", "shop.t", "shop.t", "shop.t2", "shop.t2_old"],
    ]

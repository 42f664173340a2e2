"""Changes and rows as the copy has them: record by record, in blocks, and as rows of a copy."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.arrow_types import arrow_schema
from airflow_cdc_provider.connectors.blocks import Block, log_columns
from airflow_cdc_provider.connectors.copied.columns import CopiedTables, block_records
from airflow_cdc_provider.connectors.copied.images import CopiedImages
from airflow_cdc_provider.connectors.copied.records import CopiedRecords, CopiedStream
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.columns.copied import CopiedColumns
from airflow_cdc_provider.core.columns.values import to_json
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import WITHHELD_CODEC, UndecodedRecord, undecoded
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.columns import AddedColumn, Columns, Metadata
from airflow_cdc_provider.core.spec.definition import OnUnrepresentable, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

KEY = b"k" * 32
KINDS: dict[str, tuple[LogicalType, st.SearchStrategy[Any]]] = {
    "b": (LogicalType(Kind.BOOLEAN), st.booleans()),
    "i": (LogicalType(Kind.INT64), st.integers(-(1 << 63), (1 << 63) - 1)),
    "f": (LogicalType(Kind.FLOAT64), st.floats(allow_nan=False)),
    "r": (LogicalType(Kind.FLOAT32), st.floats(width=32, allow_nan=False)),
    "n": (
        LogicalType(Kind.DECIMAL, 18, 4),
        st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-4)),
    ),
    "t": (LogicalType(Kind.TEXT), st.text(st.characters(codec="utf-8")) | st.integers(0, 99).map(str)),
    "x": (LogicalType(Kind.BYTES), st.binary()),
    "d": (LogicalType(Kind.DATE), st.dates()),
    "s": (LogicalType(Kind.TIMESTAMP), st.datetimes()),
    "z": (LogicalType(Kind.TIMESTAMPTZ), st.datetimes(timezones=st.just(UTC))),
}
SCHEMA = TableSchema(
    "public.t",
    (Column("id", LogicalType(Kind.INT32), False), *(Column(name, kind) for name, (kind, _) in KINDS.items())),
    ("id",),
)
ADDED = (
    AddedColumn("region", "eu"),
    AddedColumn("origin", metadata=Metadata.SOURCE_TABLE),
    AddedColumn("at", metadata=Metadata.COMMIT_TIME),
    AddedColumn("change", metadata=Metadata.OPERATION),
)
SETTINGS = (
    Columns(hash=tuple(SCHEMA.names), add=ADDED[:2]),
    Columns(mask=dict.fromkeys(KINDS, 3), rename={"id": "no", "t": "text"}),
    Columns(truncate={"t": 2}, hash=("id",), rename={"id": "no"}, add=ADDED),
    Columns(cast={"i": "int32", "t": "int64", "n": "decimal(8,2)", "s": "date", "f": "float32", "z": "timestamp"}),
    Columns(cast={"t": "int64", "n": "int64"}, hash=("t",), mask={"n": 1}),
)
ROWS = st.fixed_dictionaries(
    {"id": st.integers(0, 99), **{name: st.none() | values for name, (_, values) in KINDS.items()}}
)
TIME = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def task(columns: Columns, set_null: bool = False, schema: TableSchema = SCHEMA) -> TableTask:
    what = OnUnrepresentable.SET_NULL if set_null else OnUnrepresentable.STOP
    rule = TableRule("public.t", columns=columns, on_unrepresentable=what)
    copied = CopiedColumns(rule, schema, KEY).copied_schema
    return TableTask("public.t", "t", copied, rule, "0" * 64, TableState.REPLICATING)


def image(row: dict[str, Any]) -> str:
    members = []
    for column in SCHEMA.columns:
        if column.name in row:
            value = row[column.name]
            members.append(f'"{column.name}":{canonical(None if value is None else to_json(column.type)(value))}')
    return "{" + ",".join(members) + "}"


def change(op: Operation, number: int, before: dict[str, Any] | None, after: dict[str, Any] | None) -> ChangeRecord:
    return ChangeRecord(
        "public.t",
        op,
        f"{number:016x}",
        SCHEMA.schema_id,
        key_before=f"[{before['id']}]" if before else None,
        key=f"[{after['id']}]" if after else None,
        before=image(before) if before else None,
        after=image(after) if after else None,
        before_complete=bool(before),
        after_complete=bool(after),
        commit_ts=TIME,
        event_id=f"{number}[{(after or before or {})['id']}]",
    )


def changes(rows: Sequence[dict[str, Any]]) -> list[ChangeRecord]:
    """An insert, an update and a delete of each row, and an update without all columns."""
    made = []
    for number, row in enumerate(rows):
        partial = replace(change(Operation.UPDATE, 4 * number + 3, None, {"id": row["id"], "i": row["i"]}))
        partial.after_complete, partial.key_before = False, partial.key
        made += [
            change(Operation.INSERT, 4 * number, None, row),
            change(Operation.UPDATE, 4 * number + 1, row, row),
            change(Operation.DELETE, 4 * number + 2, row, None),
            partial,
        ]
    return made


def block(records: Sequence[ChangeRecord]) -> Block:
    arrays = [
        pa.array([getattr(record, name) for record in records], log_columns().field(name).type) for name in FIELDS
    ]
    return Block("public.t", pa.RecordBatch.from_arrays(arrays, schema=log_columns()))


def flat(items: Sequence[StreamItem]) -> list[ChangeRecord]:
    """Operations as texts: blocks have no other."""
    records = []
    for item in items:
        records += block_records(item) if isinstance(item, Block) else [item] if isinstance(item, ChangeRecord) else []
    return [replace(record, op=str(record.op)) for record in records]


@pytest.mark.parametrize("set_null", [False, True])
@pytest.mark.parametrize("changed", SETTINGS)
@settings(max_examples=25)
@given(rows=st.lists(ROWS, min_size=1, max_size=3))
def test_blocks_and_single_records_become_the_same_records(
    changed: Columns, set_null: bool, rows: list[dict[str, Any]]
) -> None:
    records = changes(rows)
    one = task(changed, set_null)
    singly = list(CopiedStream([one], KEY).items([SCHEMA, *records]))
    in_blocks = list(CopiedStream([one], KEY).items([SCHEMA, block(records)]))
    assert singly[0] == in_blocks[0] == one.schema
    assert flat(singly) == flat(in_blocks)


@pytest.mark.parametrize("set_null", [False, True])
@pytest.mark.parametrize("changed", SETTINGS)
@settings(max_examples=25)
@given(row=ROWS)
def test_a_copied_row_equals_the_row_of_the_stream(changed: Columns, set_null: bool, row: dict[str, Any]) -> None:
    one = task(changed, set_null)
    columns = CopiedColumns(one.rule, SCHEMA, KEY)
    streamed = CopiedRecords(one, KEY).record(change(Operation.INSERT, 1, None, row))
    arrays = [pa.array([row[field.name]], field.type) for field in arrow_schema(SCHEMA)]
    rows = pa.table(arrays, SCHEMA.names)
    if streamed.op == Operation.UNREADABLE:
        with pytest.raises(CheckFailed, match="CPY009"):
            CopiedTables(columns).table(rows)
        return
    copied = CopiedTables(columns).table(rows)
    assert copied.schema == arrow_schema(one.schema)
    values = {
        column.name: None if (value := copied[column.name][0].as_py()) is None else to_json(column.type)(value)
        for column in one.schema.columns
    }
    of_changes = {"at", "change"}
    expected = json.loads(streamed.after or "")
    assert {k: v for k, v in values.items() if k not in of_changes} == {
        k: v for k, v in expected.items() if k not in of_changes
    }
    assert streamed.after_complete and list(expected) == list(one.schema.names)


def test_the_key_is_hashed_in_keys_images_and_event_ids() -> None:
    one = task(Columns(hash=("id",), rename={"id": "no"}))
    record = CopiedRecords(one, KEY).record(change(Operation.UPDATE, 7, {"id": 4711}, {"id": 4711}))
    assert record.key == record.key_before and json.loads(record.key or "") == [json.loads(record.after or "")["no"]]
    assert "4711" not in json.dumps(to_plain(record))


def test_metadata_of_the_change_is_in_the_row_after_it_and_not_before() -> None:
    records = CopiedRecords(task(Columns(add=ADDED)), KEY)
    record = records.record(change(Operation.UPDATE, 1, {"id": 1}, {"id": 1}))
    after, before = json.loads(record.after or ""), json.loads(record.before or "")
    assert after == {
        "id": 1,
        "region": "eu",
        "origin": "public.t",
        "at": "2026-01-02T03:04:05.678000Z",
        "change": "update",
    }
    assert before == {"id": 1, "region": "eu", "origin": "public.t"} and not record.before_complete


def test_a_value_that_cannot_be_cast_makes_a_bad_record_with_the_other_columns() -> None:
    one = task(Columns(cast={"t": "int64"}))
    record = CopiedRecords(one, KEY).record(change(Operation.INSERT, 1, None, {"id": 1, "t": "x", "i": 5}))
    content = undecoded(record)
    assert content is not None and (record.op, record.key, content.op) == ("unreadable", "[1]", "insert")
    assert (content.columns, content.known) == (("t",), {"id": 1, "i": 5})
    assert content.reason.startswith("t: a value that int64 does not have") and content.raw
    deleted = CopiedRecords(one, KEY).record(change(Operation.DELETE, 1, {"id": 1, "t": "x"}, None))
    assert (deleted.op, deleted.before, deleted.before_complete) == ("delete", '{"id":1}', False)


def test_the_bytes_of_an_undecoded_record_are_dropped_where_they_contain_hidden_values() -> None:
    content = UndecodedRecord(
        "pgoutput 1", b64encode(b"secret").decode(), "wrong", "Y29udGV4dA==", "update", {"id": 1, "t": "secret"}, ("i",)
    )
    record = ChangeRecord(
        "public.t", Operation.UNREADABLE, "1", SCHEMA.schema_id, key="[1]", after=canonical(to_plain(content))
    )
    for columns in (Columns(hash=("t",)), Columns(mask={"t": 0}), Columns(truncate={"t": 1})):
        result = undecoded(CopiedRecords(task(columns), KEY).record(record))
        assert result is not None and (result.codec, result.raw, result.context) == (WITHHELD_CODEC, "", "")
        assert result.columns == ("i",) and "secret" not in json.dumps(to_plain(result))
    kept = undecoded(CopiedRecords(task(Columns(rename={"t": "text"})), KEY).record(record))
    assert kept is not None and kept.raw == content.raw and kept.known == {"id": 1, "text": "secret"}


def test_columns_to_fetch_have_the_names_of_the_copy() -> None:
    record = replace(change(Operation.UPDATE, 1, {"id": 1}, {"id": 1}), refetch=("t", "*"))
    assert CopiedRecords(task(Columns(rename={"t": "text"})), KEY).record(record).refetch == ("text", "*")


def test_a_schema_change_of_the_source_is_one_of_the_copy() -> None:
    wider = replace(SCHEMA, columns=(*SCHEMA.columns, Column("new", LogicalType(Kind.TEXT), initial='"secret"')))
    announced = ChangeRecord("public.t", Operation.SCHEMA, "1", wider.schema_id, after=canonical(to_plain(wider)))
    one = task(Columns(hash=("new",), rename={"t": "text"}))
    schema, record = CopiedStream([one], KEY).items([wider, announced])
    assert isinstance(schema, TableSchema) and isinstance(record, ChangeRecord)
    assert schema.names == (*one.schema.names, "new") and record.schema_id == schema.schema_id
    assert json.loads(record.after or "") == to_plain(schema) and "secret" not in (record.after or "")


def test_values_of_columns_that_do_not_change_keep_their_text() -> None:
    images = CopiedImages(CopiedColumns(task(Columns(rename={"t": "text"})).rule, SCHEMA, KEY))
    text = '{"id":1,"b":true,"i":12345678901234567890,"f":1e+22,"n":"1.5000","t":"\\u0001\\"é"}'
    assert images.image(text, {}).text == text.replace('"t":', '"text":')


def test_other_tables_pass_unchanged() -> None:
    other = replace(change(Operation.INSERT, 1, None, {"id": 1}), table="public.other")
    assert list(CopiedStream([task(Columns(hash=("id",)))], KEY).items([other])) == [other]


def test_decimals_keep_the_digits_of_their_type() -> None:
    one = task(Columns(cast={"i": "decimal(8,2)"}))
    record = CopiedRecords(one, KEY).record(change(Operation.INSERT, 1, None, {"id": 1, "i": 5}))
    assert json.loads(record.after or "") == {"id": 1, "i": str(Decimal("5.00"))}


def test_new_columns_are_left_out_while_a_hidden_column_is_missing_because_it_may_have_been_renamed() -> None:
    one = task(Columns(hash=("t",)))
    new = Column("new", LogicalType(Kind.TEXT))
    others = tuple(column for column in SCHEMA.columns if column.name != "t")
    renamed, added = replace(SCHEMA, columns=(*others, new)), replace(SCHEMA, columns=(*SCHEMA.columns, new))
    for source, copied in ((renamed, tuple(column.name for column in others)), (added, (*SCHEMA.names, "new"))):
        insert = replace(change(Operation.INSERT, 1, None, {"id": 1}), schema_id=source.schema_id)
        insert.after = '{"id":1,"new":"clear"}'
        schema, record = CopiedStream([one], KEY).items([source, insert])
        assert isinstance(schema, TableSchema) and isinstance(record, ChangeRecord)
        assert schema.names == copied and ("clear" in (record.after or "")) == ("new" in copied)

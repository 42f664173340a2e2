"""Records that wait while their table loses a column, and gets another one of its name."""

from __future__ import annotations

import json
from dataclasses import replace

from airflow_cdc_provider.core.log.carry_over import Carried
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, apply_correction, record_id, undecoded
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from spark_jobs.quarantine.dropped_columns import as_it_came, dropped_columns, with_columns_of
from spark_jobs.windows.driver_reads import CarriedRecord, carried_table

ID = Column("id", LogicalType(Kind.INT32), False)
V, W = (Column(name, LogicalType(Kind.TEXT)) for name in "vw")
EARLIER = TableSchema("t", (ID, V, W), ("id",))
LATER = replace(EARLIER, columns=(ID, W))
PARKED = ChangeRecord("t", "update", "02", EARLIER.schema_id, key="[1]", after='{"id":1,"v":"a","w":"b"}')
CONTENT = UndecodedRecord("c", "AA==", "no date", op="insert", known={"id": 2, "w": "b"}, columns=("v",))
BAD = ChangeRecord("t", "unreadable", "01", EARLIER.schema_id, key="[2]", after=canonical(to_plain(CONTENT)))
OTHER = ChangeRecord("t", "insert", "03", "another", key="[3]", after='{"id":3,"v":"a"}')


def after_drop(*records: ChangeRecord) -> list[ChangeRecord]:
    dropped = dropped_columns(EARLIER, LATER, {EARLIER.schema_id: EARLIER, LATER.schema_id: LATER}, {})
    assert [schema.names for schema in dropped.schemas] == [("id", "w")]
    waiting = carried_table(CarriedRecord(record, Carried.PARKED, None, None) for record in records)
    rows = dropped.without(waiting).to_pylist()
    names = ("op", "schema_id", "key", "before", "after", "order_key")
    return [replace(record, **{name: row[name] for name in names}) for record, row in zip(records, rows, strict=True)]


def test_waiting_records_do_not_keep_a_value_for_a_later_column_of_that_name() -> None:
    parked, other = after_drop(PARKED, OTHER)
    assert parked == replace(PARKED, schema_id=LATER.schema_id, after='{"id":1,"w":"b"}')
    assert other == OTHER


def test_a_bad_record_needs_no_value_of_a_column_that_is_gone_although_its_name_is_back() -> None:
    (bad,) = after_drop(BAD)
    content = undecoded(bad)
    assert content is not None and (content.columns, content.schema_id) == ((), EARLIER.schema_id)
    assert record_id(bad) == record_id(BAD) and bad.schema_id == LATER.schema_id
    corrected = apply_correction(bad, {}, EARLIER)
    assert (corrected.op, corrected.schema_id, json.loads(corrected.after or "")) == (
        *("insert", LATER.schema_id, {"id": 2, "w": "b"}),
    )


def test_bytes_are_decoded_by_their_own_schema_and_lose_the_column_afterwards() -> None:
    (bad,) = after_drop(BAD)
    original = as_it_came(bad)
    assert original.schema_id == EARLIER.schema_id and as_it_came(BAD) is BAD
    decoded = replace(original, op=Operation.INSERT, after='{"id":2,"v":"a","w":"b"}')
    (found,) = with_columns_of([decoded], LATER)
    assert (found.schema_id, found.after) == (LATER.schema_id, '{"id":2,"w":"b"}')


def test_a_column_with_an_id_is_not_forgotten() -> None:
    with_id = replace(EARLIER, columns=(ID, replace(V, id="7"), W))
    assert not dropped_columns(with_id, LATER, {"s": with_id}, {}).by_schema

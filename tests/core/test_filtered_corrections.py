"""A corrected row is tried against the row filter of its table, as a decoded one is."""

from __future__ import annotations

import json
from typing import Any

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, record_id
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.columns import Columns
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema
from spark_jobs.quarantine.bad_records import BadRecord, Resolution, apply_decisions
from spark_jobs.quarantine.present_columns import PresentColumns

TEXT, INT = LogicalType(Kind.TEXT), LogicalType(Kind.INT64)
SCHEMA = TableSchema("public.t", (Column("id", INT), Column("area", TEXT), Column("n", INT)), ("id",))
KEYLESS = TableSchema("public.t", SCHEMA.columns)
WHERE = (Condition("region", Comparison.EQUAL, "north"), Condition("n", Comparison.GREATER, 0))
RULE = TableRule("public.t", where=WHERE, columns=Columns(rename={"region": "area"}))


def unreadable(op: str, *columns: str, **known: object) -> ChangeRecord:
    what = UndecodedRecord("c", "AA==", "no number", op=op, known=known, columns=columns)
    key = f"[{known['id']}]" if "id" in known else None
    return ChangeRecord("public.t", "unreadable", "01", "s", key=key, after=canonical(to_plain(what)))


def resolved(record: ChangeRecord, schema: TableSchema = SCHEMA, rule: TableRule = RULE, **values: Any) -> Resolution:
    found = record_id(record)
    decision = OperatorDecision("1", DecisionKind.REPLAY, "r", "public.t", "ann", "", record=found, values=values)
    bad = BadRecord(record, 1, "no number")
    return apply_decisions([bad], {found: decision}, lambda one: [one], rule, schema, PresentColumns({}, {}, "s"))


def test_a_corrected_row_that_the_filter_takes_is_copied() -> None:
    (record,) = resolved(unreadable("insert", "n", id=1, area="north"), n=3).corrected_records
    assert (record.op, json.loads(record.after or "")) == ("insert", {"id": 1, "area": "north", "n": 3})


def test_a_corrected_row_that_the_filter_does_not_take_leaves_the_copy() -> None:
    for known, values in (
        ({"area": "south"}, {"n": 3}),
        ({"area": "north"}, {"n": 0}),
        ({"area": "north"}, {"n": None}),
    ):
        for op in ("insert", "update", ""):
            (record,) = resolved(unreadable(op, "n", id=1, **known), **values).corrected_records
            assert (record.op, record.key, record.key_before, record.after) == ("delete", None, "[1]", None)


def test_a_row_that_was_decoded_is_tried_again_if_a_value_of_the_filter_changes() -> None:
    decoded = ChangeRecord("public.t", "update", "01", "s", "[1]", "[1]", after='{"id":1,"area":"north","n":1}')
    assert [one.op for one in resolved(decoded, n=0).corrected_records] == ["delete"]
    assert [one.op for one in resolved(decoded, n=2).corrected_records] == ["upsert"], "the row may be new in the copy"
    assert [one.op for one in resolved(decoded).corrected_records] == ["update"]


def test_a_row_without_a_value_that_the_filter_reads_stays_bad_and_the_reason_names_the_column() -> None:
    found = resolved(unreadable("update", "n", id=1), n=3)
    assert [entry.reason for entry in found.open] == [
        "the row filter reads column area, which has no value: give it, too"
    ]
    area = Column("area", TEXT, origin=Origin("region", TEXT, converted=True, hidden=True))
    hashed = TableSchema("public.t", (SCHEMA.columns[0], area, SCHEMA.columns[2]), ("id",))
    found = resolved(unreadable("insert", "n", id=1, area="f00"), hashed, n=3)
    assert found.corrected == () and "region, whose value the copy does not have" in found.open[0].reason


def test_a_row_of_a_table_without_a_key_is_left_out() -> None:
    found = resolved(unreadable("insert", "n", id=1, area="south"), KEYLESS, n=3)
    assert (len(found.corrected), found.corrected_records, found.open) == (1, [], ())
    assert resolved(unreadable("update", "n", id=1, area="south"), KEYLESS, n=3).open


def test_without_a_filter_every_corrected_row_is_copied() -> None:
    rule = TableRule("public.t")
    assert [one.op for one in resolved(unreadable("insert", "n", id=1, area="x"), rule=rule, n=0).corrected_records]

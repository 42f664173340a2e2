"""Bad records as data: what is kept of them, how they are corrected, and how records are counted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decisions_by_record
from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.core.log.change_log import quarantine_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import (
    BadRecord,
    BadRecordProblems,
    UndecodedRecord,
    apply_correction,
    bad_record,
    build_accounting,
    is_insert,
    max_bad_records,
    own_key,
    record_id,
    undecoded,
)
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Quarantine
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT), Column("v", TEXT), Column("w", TEXT)), ("id",))


def unreadable(op: str, *columns: str, key: str | None = "[1]", **known: object) -> ChangeRecord:
    what = UndecodedRecord("c", "AA==", "no date", op=op, known=known, columns=columns)
    return ChangeRecord("public.t", "unreadable", "01", "s", key=key, after=canonical(to_plain(what)))


def image(record: ChangeRecord) -> object:
    return json.loads(record.after or record.before or "{}")


def test_a_record_is_corrected_once_every_lost_column_is_given() -> None:
    bad = unreadable("insert", "v", "w", id=1)
    assert apply_correction(bad, {"v": "a"}, SCHEMA) is bad
    good = apply_correction(bad, {"v": "a", "w": None}, SCHEMA)
    assert (good.op, good.key, good.key_before, good.after_complete) == ("insert", "[1]", None, True)
    assert image(good) == {"id": 1, "v": "a", "w": None}


def test_a_lost_column_that_the_table_no_longer_has_needs_no_value() -> None:
    good = apply_correction(unreadable("insert", "gone", id=1, v="a", w="b"), {}, SCHEMA)
    assert (good.op, image(good), good.after_complete) == ("insert", {"id": 1, "v": "a", "w": "b"}, True)
    both = unreadable("insert", "gone", "v", id=1, w="b")
    assert apply_correction(both, {}, SCHEMA) is both
    assert image(apply_correction(both, {"v": "a"}, SCHEMA)) == {"id": 1, "v": "a", "w": "b"}


def test_columns_that_were_not_sent_stay_unknown() -> None:
    good = apply_correction(unreadable("update", "v", id=1), {"v": "a"}, SCHEMA)
    assert (good.op, good.key, good.key_before, good.after_complete) == ("update", "[1]", "[1]", False)
    assert image(good) == {"id": 1, "v": "a"}


def test_a_message_without_any_value_needs_the_whole_row_and_a_delete_its_key() -> None:
    bad = unreadable("", key=None)
    assert apply_correction(bad, {"id": 1, "v": "a"}, SCHEMA) is bad
    assert (whole := apply_correction(bad, {"id": 1, "v": "a", "w": "b"}, SCHEMA)).op == "upsert" and whole.key == "[1]"
    gone = apply_correction(unreadable("delete", key=None), {"id": 1}, SCHEMA)
    assert (gone.op, gone.key_before, own_key(gone)) == ("delete", "[1]", "[1]")


def test_the_key_that_was_read_is_kept_unless_another_is_given() -> None:
    good = apply_correction(unreadable("update", "v"), {"v": "a"}, SCHEMA)
    assert (good.key, good.key_before, image(good)) == ("[1]", "[1]", {"v": "a"})


def test_given_values_replace_those_that_do_not_fit() -> None:
    bad = ChangeRecord(
        "public.t", "insert", "01", "s", key="[9]", after='{"id":9,"v":"a","w":"b"}', after_complete=True
    )
    good = apply_correction(bad, {"id": 1, "w": "c"}, SCHEMA)
    assert (good.key, image(good), good.after_complete) == ("[1]", {"id": 1, "v": "a", "w": "c"}, True)
    gone = ChangeRecord("public.t", "delete", "02", "s", key_before="[9]", before='{"id":9}')
    assert apply_correction(gone, {"id": 1}, SCHEMA).key_before == "[1]"


def test_a_bad_record_is_kept_whole_with_a_checksum() -> None:
    decoded = ChangeRecord("public.t", "insert", "01", "s", key="[1]", after="{}", warnings=("nan_lost",))
    for record in (decoded, unreadable("insert")):
        kept = bad_record(record, 3, "no cause", "2026-01-01")
        assert BadRecord.decode(kept.encode(), "here") == kept and kept.record == record
        with pytest.raises(StagingInvalid):
            BadRecord.decode(kept.encode().replace(b"no cause", b"something"), "here")
    assert bad_record(unreadable("insert"), 3, "no cause", "").codec == "c"
    assert undecoded(decoded) is None and is_insert(decoded) and is_insert(unreadable("insert"))
    assert not is_insert(unreadable("update"))


def test_a_record_id_is_unique_to_table_order_key_and_row_key() -> None:
    one = unreadable("insert")
    assert record_id(one) == record_id(replace(one, after=None))
    others = [replace(one, table="b"), replace(one, order_key="02"), replace(one, key="[77]")]
    nameless = [
        replace(one, key=None, after=canonical(to_plain(UndecodedRecord("c", raw, "why")))) for raw in ("YQ==", "Yg==")
    ]
    assert len({record_id(other) for other in (one, *others, *nameless)}) == 6


@pytest.mark.parametrize(("records", "limit"), [(0, 100), (100_000, 100), (1_000_000, 1_000)])
def test_the_limit_of_bad_records_is_a_number_or_a_fraction_whichever_is_larger(records: int, limit: int) -> None:
    assert max_bad_records(Quarantine(), records) == limit


def test_the_newest_decision_about_a_record_counts() -> None:
    first = OperatorDecision("1", DecisionKind.REPLAY, "shop", "public.t", "ann", "", record="r1")
    later = OperatorDecision("2", DecisionKind.DISCARD, "shop", "public.t", "ann", "", record="r1")
    approval = OperatorDecision("3", DecisionKind.APPROVE_DELETES, "shop", "public.t", "ann", "")
    other = replace(later, id="4", table="public.o")
    assert decisions_by_record([later, approval, other, first], "public.t") == {"r1": later}


@given(st.lists(st.integers(0, 1000), min_size=6, max_size=6))
def test_every_record_read_is_counted_once(parts: list[int]) -> None:
    applied, superseded, ignored, discarded, quarantined, held = parts
    counts = build_accounting(sum(parts), 0, applied, ignored, discarded, quarantined, held)
    assert counts["superseded"] == superseded


def test_a_refusal_reports_where_the_bytes_are_and_what_to_do() -> None:
    refusal = BadRecordProblems("shop", "public.t", 7, "abc", "column v cannot be read", "/staging/shop")
    for problem in (refusal.stop(), refusal.without_key()):
        assert "public.t" in problem.what and "window 7" in problem.what and "column v" in problem.what
        assert f"/staging/shop/{quarantine_path('public.t', 'abc')}" in problem.data
        assert "airflow cdc quarantine show shop abc" in problem.do and "airflow cdc resume shop" in problem.do
    many = refusal.too_many(101, 100)
    assert "101" in many.what and many.allowed.startswith("100")

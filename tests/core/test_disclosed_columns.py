"""Which columns of a sensitive table may be copied although the YAML does not name them."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.spec.selected_columns import disclosed_columns, withhold
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

TEXT = LogicalType(Kind.TEXT)


def schema(**ids: str) -> TableSchema:
    return TableSchema("s.t", tuple(Column(name, TEXT, id=one) for name, one in ids.items()), ("id",))


FIRST = schema(id="1", a="2")


def test_the_first_run_discloses_all_columns_or_those_of_existing_copies() -> None:
    assert disclosed_columns(None, FIRST, []) == {"id": "1", "a": "2"}
    assert disclosed_columns(None, schema(id="1", a="2", ssn="3"), [FIRST]) == {"id": "1", "a": "2"}


def test_a_new_column_stays_withheld_in_every_copy() -> None:
    before = {"id": "1", "a": "2"}
    assert disclosed_columns(before, schema(id="1", a="2", ssn="3"), []) == before


def test_a_column_is_known_by_its_id_or_until_it_is_dropped() -> None:
    renamed, other = schema(id="1", b="2"), schema(id="1", a="9")
    assert disclosed_columns({"id": "1", "a": "2"}, renamed, []) == {"id": "1", "b": "2"}
    assert disclosed_columns({"id": "1", "a": "2"}, other, []) == {"id": "1"}, "another column has the name"
    assert disclosed_columns({"id": "", "a": ""}, schema(id=""), []) == {"id": ""}, "the next a is a new column"


def test_the_rule_lists_what_may_be_copied() -> None:
    rule, selected = TableRule("s.t", sensitive=True), schema(id="1", a="2", ssn="3", note="4")
    copied, withheld = withhold(rule, selected, {"id": "1", "a": "2"})
    assert (copied.columns.include, withheld) == (("id", "a"), ("ssn", "note"))
    named = TableRule("s.t", sensitive=True, columns=Columns(plain=("note",)))
    assert withhold(named, selected, {"id": "1"})[1] == ("a", "ssn")
    assert withhold(TableRule("s.t"), selected, {"id": "1"}) == (TableRule("s.t"), ())

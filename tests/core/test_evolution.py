from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_evolution import compare, widens

ID = Column("id", LogicalType(Kind.INT32), False)
NAME = Column("name", LogicalType(Kind.TEXT))
OLD = TableSchema("public.a", (ID, NAME), ("id",))

kinds = st.sampled_from([kind for kind in Kind if kind is not Kind.DECIMAL]).map(LogicalType)
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: LogicalType(Kind.DECIMAL, p, s)))
types = kinds | decimals


def test_an_equal_schema_changes_nothing() -> None:
    evolution = compare(OLD, OLD)
    assert (evolution.added, evolution.widened, evolution.dropped, evolution.breaking) == ((), (), (), "")


def test_an_added_column_is_additive() -> None:
    city = Column("city", LogicalType(Kind.TEXT), initial='"?"')
    evolution = compare(OLD, replace(OLD, columns=(ID, city, NAME)))
    assert (evolution.added, evolution.breaking) == ((city,), "")


def test_a_dropped_column_stays_in_the_target() -> None:
    evolution = compare(OLD, replace(OLD, columns=(ID,)))
    assert (evolution.dropped, evolution.breaking) == (("name",), "")


def test_a_column_dropped_while_another_is_added_may_be_a_rename() -> None:
    evolution = compare(OLD, replace(OLD, columns=(ID, replace(NAME, name="title"))))
    assert "name dropped while title added: perhaps a rename" in evolution.breaking


def test_a_changed_key_is_breaking_even_if_the_columns_are_the_same() -> None:
    assert compare(OLD, replace(OLD, key=("id", "name"))).breaking == "the key changed from (id) to (id, name)"


def test_a_wider_type_is_additive_and_a_narrower_one_is_not() -> None:
    wide = replace(OLD, columns=(replace(ID, type=LogicalType(Kind.INT64)), NAME))
    assert not compare(OLD, wide).breaking and compare(OLD, wide).widened == (wide.columns[0],)
    assert compare(wide, OLD).breaking == "column id changed from int64 to int32"


def test_the_order_of_columns_and_their_native_types_do_not_matter() -> None:
    assert compare(OLD, replace(OLD, columns=(NAME, replace(ID, native="serial")))) == compare(OLD, OLD)


def test_all_reasons_are_reported_at_once() -> None:
    new = TableSchema("public.a", (replace(ID, type=LogicalType(Kind.TEXT)), replace(NAME, name="n")), ("n",))
    assert compare(OLD, new).breaking.count(";") == 2


@given(decimals, decimals)
def test_a_decimal_widens_if_and_only_if_no_digit_is_lost(old: LogicalType, new: LogicalType) -> None:
    assert old.precision and new.precision and old.scale is not None and new.scale is not None
    whole, fraction = old.precision - old.scale, old.scale
    assert widens(old, new) == (new.precision - new.scale >= whole and new.scale >= fraction)


@given(types, types)
def test_only_equal_types_widen_to_each_other(one: LogicalType, other: LogicalType) -> None:
    if one != other and widens(one, other):
        assert not widens(other, one)


@given(types, types, types)
def test_widening_is_transitive(a: LogicalType, b: LogicalType, c: LogicalType) -> None:
    if widens(a, b) and widens(b, c):
        assert widens(a, c)


@pytest.mark.parametrize(
    ("old", "new"), [(Kind.INT64, Kind.FLOAT64), (Kind.INT32, Kind.FLOAT32), (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)]
)
def test_a_type_does_not_widen_to_one_that_would_change_values(old: Kind, new: Kind) -> None:
    assert not widens(LogicalType(old), LogicalType(new))

"""The changes between two schemas."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare, widens

ID = Column("id", LogicalType(Kind.INT32), False)
NAME = Column("name", LogicalType(Kind.TEXT))
OLD = TableSchema("public.a", (ID, NAME), ("id",))
WITH_IDS = TableSchema("public.a", (replace(ID, id="1.1"), replace(NAME, id="1.2")), ("id",))

kinds = st.sampled_from([kind for kind in Kind if kind is not Kind.DECIMAL]).map(LogicalType)
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: LogicalType(Kind.DECIMAL, p, s)))
types = kinds | decimals


def changes(old: TableSchema, new: TableSchema) -> list[str]:
    return [str(change) for change in compare(old, new)]


def test_an_equal_schema_changes_nothing() -> None:
    assert compare(OLD, OLD) == ()


def test_columns_are_added_and_dropped() -> None:
    city = Column("city", LogicalType(Kind.TEXT), initial='"?"')
    assert changes(OLD, replace(OLD, columns=(ID, city, NAME))) == ["column city text was added"]
    assert changes(OLD, replace(OLD, columns=(ID,))) == ["column name was dropped"]


def test_without_ids_a_column_dropped_while_another_is_added_may_be_a_rename() -> None:
    found = compare(OLD, replace(OLD, columns=(ID, replace(NAME, name="title"))))
    assert [change.kind for change in found] == [ChangeKind.DROP_COLUMN, ChangeKind.ADD_COLUMN, ChangeKind.RENAME]
    assert str(found[-1]) == "name dropped while title added: perhaps a rename" and not found[-1].is_certain


def test_with_ids_a_rename_is_certain_and_so_is_another_column() -> None:
    title = replace(NAME, name="title", id="1.2")
    (renamed,) = compare(WITH_IDS, replace(WITH_IDS, columns=(WITH_IDS.columns[0], title)))
    assert (renamed.kind, str(renamed)) == (ChangeKind.RENAME, "column name was renamed to title")
    assert renamed.is_certain
    other = replace(title, id="1.3")
    found = changes(WITH_IDS, replace(WITH_IDS, columns=(WITH_IDS.columns[0], other)))
    assert found == ["column name was dropped", "column title text was added"]


def test_a_column_dropped_and_added_again_is_another_one_by_its_id() -> None:
    again = replace(WITH_IDS, columns=(WITH_IDS.columns[0], replace(NAME, id="1.7")))
    assert changes(WITH_IDS, again) == ["column name was dropped", "column name text was added"]


def test_an_operator_maps_columns_as_renamed() -> None:
    renamed = replace(OLD, columns=(ID, replace(NAME, name="title")))
    assert [str(change) for change in compare(OLD, renamed, {"name": "title"})] == ["column name was renamed to title"]
    apart = [str(change) for change in compare(OLD, renamed, {})]
    assert apart == ["column name was dropped", "column title text was added"]


def test_a_renamed_column_of_the_key_does_not_change_the_key() -> None:
    new = TableSchema("public.a", (replace(ID, name="number", id="1.1"), WITH_IDS.columns[1]), ("number",))
    assert changes(WITH_IDS, new) == ["column id was renamed to number"]


def test_another_key_is_a_change_even_if_the_columns_are_the_same() -> None:
    assert changes(OLD, replace(OLD, key=("id", "name"))) == ["the key changed from (id) to (id, name)"]


def test_a_wider_type_and_a_narrower_one() -> None:
    wide = replace(OLD, columns=(replace(ID, type=LogicalType(Kind.INT64)), NAME))
    assert [change.kind for change in compare(OLD, wide)] == [ChangeKind.WIDEN]
    assert [change.kind for change in compare(wide, OLD)] == [ChangeKind.NARROW]
    assert changes(wide, OLD) == ["column id changed from int64 to int32"]


def test_the_order_of_columns_and_their_native_types_do_not_matter() -> None:
    assert compare(OLD, replace(OLD, columns=(NAME, replace(ID, native="serial")))) == ()


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

"""Which changes of a table its stream does not carry, by what the catalog says of it then and now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.identity import (
    NO_UNLOGGED_CHANGES,
    ColumnIdentity,
    TableIdentity,
    TablePartition,
    UnloggedChanges,
    unlogged_changes,
)
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

ID, A, B = ColumnIdentity(1, "int4", "10"), ColumnIdentity(2, "int4", "10"), ColumnIdentity(3, "text", "10")
KNOWN = TableIdentity(
    "16384",
    {"id": ID, "a": A, "b": B},
    last_number=3,
    labels={"7": "open", "8": "done"},
    composites={"9": "1:23:-1"},
    partitions={"16384": TablePartition("public.t", "16384")},
)
REWRITTEN = {"16384": TablePartition("public.t", "16999")}


def schema(*names: str) -> TableSchema:
    columns = tuple(Column(name, LogicalType(Kind.INT32), native="integer") for name in names)
    return TableSchema("public.t", columns, ("id",))


def seen(now: TableIdentity, *names: str) -> UnloggedChanges:
    return unlogged_changes(KNOWN, now, schema("id", "a", "b"), schema(*(names or ("id", "a", "b"))))


def test_an_equal_catalog_says_nothing() -> None:
    assert seen(KNOWN) == NO_UNLOGGED_CHANGES
    assert not seen(KNOWN)


@pytest.mark.parametrize("now", ["6", ""])
def test_a_table_that_left_the_stream_may_have_missed_changes(now: str) -> None:
    carried = replace(KNOWN, membership="5")
    changes = unlogged_changes(carried, replace(KNOWN, membership=now), schema("id", "a", "b"), schema("id", "a", "b"))
    assert changes.rows == ("the stream did not carry its changes for some time",)
    assert not seen(replace(KNOWN, membership=now)), "the copy does not say under which membership it was made"


def test_it_is_read_as_it_was_written() -> None:
    assert from_plain(TableIdentity, to_plain(KNOWN)) == KNOWN


@pytest.mark.parametrize(
    ("columns", "names", "words"),
    [
        ({"id": ID, "a": B, "b": A}, ("id", "a", "b"), ("column a was renamed to b", "column b was renamed to a")),
        ({"id": ID, "a2": A, "b": B}, ("id", "a2", "b"), ("column a was renamed to a2",)),
        (
            {"id": ID, "a": A, "b": ColumnIdentity(4, "text", "12")},
            ("id", "a", "b"),
            ("column b was dropped and another one was added under its name",),
        ),
        (
            {"id": ID, "old_b": B, "a": A, "b": ColumnIdentity(4, "text", "12")},
            ("id", "a", "b", "old_b"),
            ("column b was renamed to old_b",),
        ),
        (
            {"id": ID, "a": replace(A, type="int8"), "b": B},
            ("id", "a", "b"),
            ("column a changed from integer to integer",),
        ),
        (
            {"id": ID, "a": A, "b": B, "g": ColumnIdentity(2, "int4")},
            ("id", "a", "b", "g"),
            ("column a was renamed to g",),
        ),
    ],
    ids=["swapped", "renamed", "added again", "renamed and added again", "type", "renamed, not new"],
)
def test_columns_that_are_not_what_they_were(
    columns: dict[str, ColumnIdentity], names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert seen(replace(KNOWN, columns=columns, last_number=9), *names).columns == words


def test_a_dropped_column_and_one_that_takes_one_value_in_all_rows_are_harmless() -> None:
    assert not seen(replace(KNOWN, columns={"id": ID, "a": A}), "id", "a")
    for new in (ColumnIdentity(4, "int4"), ColumnIdentity(4, "int4", filled=True)):
        assert not seen(replace(KNOWN, columns={**KNOWN.columns, "z": new}, last_number=4), "id", "a", "b", "z")


@pytest.mark.parametrize(
    ("new", "partitions", "word"),
    [
        (ColumnIdentity(4, "int4", unknown_fill=True), KNOWN.partitions, "older than the column"),
        (ColumnIdentity(4, "int4"), REWRITTEN, "older than the column"),
        (ColumnIdentity(3, "int4"), KNOWN.partitions, "was renamed to z"),
    ],
    ids=["unknown", "a value per row", "of a column that was"],
)
def test_a_new_column_whose_older_values_nobody_tells(
    new: ColumnIdentity, partitions: dict[str, TablePartition], word: str
) -> None:
    columns = {name: one for name, one in KNOWN.columns.items() if one.number != new.number}
    now = replace(KNOWN, columns={**columns, "z": new}, last_number=4, partitions=partitions)
    (said,) = seen(now, *columns, "z").columns
    assert word in said


def test_a_column_that_was_not_copied_before_and_is_older_than_the_copy() -> None:
    known = replace(KNOWN, columns={"id": ID, "a": A})  # column 3 was a generated one
    found = unlogged_changes(known, KNOWN, schema("id", "a"), schema("id", "a", "b"))
    assert found.columns == ("column b was a generated column and is an ordinary column now",)


def test_a_column_that_comes_back_where_the_copy_never_heard_that_it_was_gone() -> None:
    known = replace(KNOWN, columns={"id": ID, "a": A})
    now = replace(KNOWN, columns={"id": ID, "a": A, "b": ColumnIdentity(4, "text")}, last_number=4)
    names = schema("id", "a", "b")
    assert unlogged_changes(known, now, names, names).columns == (
        "column b was dropped and another one was added under its name",
    )


def test_labels_and_composite_types_are_compared_by_their_own_ids() -> None:
    assert seen(replace(KNOWN, labels={"7": "opened", "8": "done"})).rows == ("enum label open was renamed to opened",)
    assert not seen(replace(KNOWN, labels={**KNOWN.labels, "11": "late"}))
    assert seen(replace(KNOWN, composites={"9": "1:23:-1,2:25:-1"})).rows == (
        "the attributes of a composite type changed",
    )


def test_rewritten_rows_are_compared_and_a_column_computed_anew_is_told() -> None:
    assert seen(replace(KNOWN, partitions=REWRITTEN)) == UnloggedChanges(rewritten=True)
    altered = {**KNOWN.columns, "a": replace(A, altered="99")}
    assert seen(replace(KNOWN, partitions=REWRITTEN, columns=altered)) == UnloggedChanges(
        rewritten=True, recomputed=True
    )
    assert not seen(replace(KNOWN, columns=altered)), "a statement that touched no row"


def test_partitions_that_came_and_went() -> None:
    low, top = TablePartition("public.low", "1", "5"), TablePartition("public.top", "2", "6")
    known = replace(KNOWN, partitions={"21": low})
    now = replace(KNOWN, partitions={"21": low, "22": top})
    names = schema("id", "a", "b")
    assert unlogged_changes(known, now, names, names) == UnloggedChanges(attached=("22",))
    assert unlogged_changes(now, known, names, names) == UnloggedChanges(detached=("public.top",))
    again = replace(known, partitions={"21": replace(low, joined="7")})
    assert unlogged_changes(known, again, names, names).rewritten


PLACES = replace(KNOWN, positional=True)


@pytest.mark.parametrize(
    ("columns", "names", "words"),
    [
        ({"id": ID, "a": B, "b": A}, ("id", "a", "b"), ("columns a, b changed positions or names",)),
        ({"id": ID, "b": A}, ("id", "b"), ()),
        ({"id": ID, "z": A, "a": B, "b": ColumnIdentity(4, "text")}, ("id", "z", "a", "b"), ()),
    ],
    ids=["swapped", "one behind a dropped one", "one behind a new one"],
)
def test_of_columns_that_are_known_by_their_places_the_order_counts(
    columns: dict[str, ColumnIdentity], names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    known = replace(PLACES, columns={name: replace(one, type="t") for name, one in KNOWN.columns.items()})
    told = {name: replace(one, type="t", in_rows=True) for name, one in columns.items()}
    now = replace(known, columns=told)
    assert unlogged_changes(known, now, schema("id", "a", "b"), schema(*names)).columns == words


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"length": 20}, {"length": 5}, "shortened from 20 to 5"),
        ({}, {"length": 5}, "shortened from unlimited to 5"),
        ({"length": 5}, {"length": 20}, ""),
        ({"length": 5}, {}, ""),
        ({"labels": ("new", "open")}, {"labels": ("late", "new")}, "lost the labels open"),
        ({"labels": ("new", "open")}, {"labels": ("open", "late", "new")}, ""),
        ({"expression": "id * 2"}, {"expression": "id * 3"}, "the expression of column b changed"),
        ({}, {"expression": "id * 3"}, "the expression of column b changed"),
        ({"expression": "id * 2"}, {}, ""),
    ],
)
def test_room_and_labels_that_a_statement_takes_away(before: dict[str, Any], after: dict[str, Any], word: str) -> None:
    known = replace(KNOWN, columns={**KNOWN.columns, "b": replace(B, **before)})
    found = unlogged_changes(
        known, replace(known, columns={**KNOWN.columns, "b": replace(B, **after)}), schema("id", "b"), schema("id", "b")
    )
    assert bool(found) == bool(word) and word in "".join(found.columns)


def test_a_new_column_is_asked_of_the_rows_as_long_as_the_copy_lacks_it() -> None:
    new = ColumnIdentity(4, "int4", in_rows=True)
    now = replace(KNOWN, columns={**KNOWN.columns, "z": new}, last_number=4)
    assert seen(now, "id", "a", "b", "z") == UnloggedChanges(added=("z",))
    held, wanted = schema("id", "a", "b"), schema("id", "a", "b", "z")
    assert unlogged_changes(now, now, held, wanted).added == ("z",), "the catalog was read behind the statement"
    assert not unlogged_changes(now, now, wanted, wanted)


def test_another_table_of_the_same_name() -> None:
    assert seen(replace(KNOWN, table="20000")).rows == ("the table was replaced by another one of the same name",)

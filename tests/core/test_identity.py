"""Unlogged changes of a table, found by comparing what its catalog contained then and now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.identity import (
    NO_UNLOGGED_CHANGES,
    ColumnIdentity,
    StreamSettings,
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


def changes_since(now: TableIdentity, *names: str) -> UnloggedChanges:
    return unlogged_changes(KNOWN, now, schema("id", "a", "b"), schema(*(names or ("id", "a", "b"))))


def test_an_equal_catalog_shows_no_change() -> None:
    assert changes_since(KNOWN) == NO_UNLOGGED_CHANGES
    assert not changes_since(KNOWN)


@pytest.mark.parametrize("now", ["6", ""])
def test_a_table_that_left_the_stream_may_have_missed_changes(now: str) -> None:
    carried = replace(KNOWN, membership="5")
    changes = unlogged_changes(carried, replace(KNOWN, membership=now), schema("id", "a", "b"), schema("id", "a", "b"))
    assert changes.rows == ("the stream did not carry its changes for some time",)
    assert not changes_since(replace(KNOWN, membership=now)), "the membership at the time of the copy is unknown"


def test_an_identity_is_read_as_it_was_written() -> None:
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
def test_columns_that_were_renamed_or_replaced_are_reported(
    columns: dict[str, ColumnIdentity], names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert changes_since(replace(KNOWN, columns=columns, last_number=9), *names).columns == words


def test_a_dropped_column_and_one_with_the_same_value_in_all_rows_are_harmless() -> None:
    assert not changes_since(replace(KNOWN, columns={"id": ID, "a": A}), "id", "a")
    for new in (ColumnIdentity(4, "int4"), ColumnIdentity(4, "int4", filled=True)):
        assert not changes_since(
            replace(KNOWN, columns={**KNOWN.columns, "z": new}, last_number=4), "id", "a", "b", "z"
        )


@pytest.mark.parametrize(
    ("new", "partitions", "word"),
    [
        (ColumnIdentity(4, "int4", unknown_fill=True), KNOWN.partitions, "older than the column"),
        (ColumnIdentity(4, "int4"), REWRITTEN, "older than the column"),
        (ColumnIdentity(3, "int4"), KNOWN.partitions, "was renamed to z"),
    ],
    ids=["unknown", "a value per row", "renamed column"],
)
def test_a_new_column_whose_older_values_are_unknown_is_reported(
    new: ColumnIdentity, partitions: dict[str, TablePartition], word: str
) -> None:
    columns = {name: one for name, one in KNOWN.columns.items() if one.number != new.number}
    now = replace(KNOWN, columns={**columns, "z": new}, last_number=4, partitions=partitions)
    (change,) = changes_since(now, *columns, "z").columns
    assert word in change


def test_a_column_that_was_not_copied_and_is_older_than_the_copy_is_reported() -> None:
    known = replace(KNOWN, columns={"id": ID, "a": A})  # column 3 was a generated one
    found = unlogged_changes(known, KNOWN, schema("id", "a"), schema("id", "a", "b"))
    assert found.columns == ("column b was a generated column and is an ordinary column now",)


def test_a_column_that_is_not_copied_and_gets_a_name_that_is_copied_is_reported() -> None:
    now = replace(KNOWN, columns={"id": ID, "a": A, "b2": B})
    found = unlogged_changes(KNOWN, now, schema("id", "a"), schema("id", "a", "b2"))
    assert found.columns == ("column b, which is not copied, was renamed to b2",)


def test_a_renamed_or_widened_column_with_an_id_is_left_to_the_stream() -> None:
    copied = replace(schema("id", "a"), columns=tuple(replace(one, id=one.name) for one in schema("id", "a").columns))
    key, a = copied.columns
    now = replace(KNOWN, columns={"id": ID, "a2": replace(A, type="int8")})
    known = replace(KNOWN, columns={"id": ID, "a": A})
    later = replace(copied, columns=(key, replace(a, name="a2", type=LogicalType(Kind.INT64))))
    assert unlogged_changes(known, now, copied, later).columns == ()
    taken = replace(now, columns={**now.columns, "a": ColumnIdentity(7, "int4")})
    assert unlogged_changes(known, taken, copied, later).columns == ("column a was renamed to a2",)


def test_a_column_dropped_and_added_again_unseen_by_the_copy_is_reported() -> None:
    known = replace(KNOWN, columns={"id": ID, "a": A})
    now = replace(KNOWN, columns={"id": ID, "a": A, "b": ColumnIdentity(4, "text")}, last_number=4)
    names = schema("id", "a", "b")
    assert unlogged_changes(known, now, names, names).columns == (
        "column b was dropped and another one was added under its name",
    )


def test_enum_labels_and_composite_types_are_compared_by_their_own_ids() -> None:
    assert changes_since(replace(KNOWN, labels={"7": "opened", "8": "done"})).rows == (
        "enum label open was renamed to opened",
    )
    assert not changes_since(replace(KNOWN, labels={**KNOWN.labels, "11": "late"}))
    assert changes_since(replace(KNOWN, composites={"9": "1:23:-1,2:25:-1"})).rows == (
        "the attributes of a composite type changed",
    )


def test_rewritten_rows_and_a_recomputed_column_are_reported() -> None:
    assert changes_since(replace(KNOWN, partitions=REWRITTEN)) == UnloggedChanges(rewritten=True)
    altered = {**KNOWN.columns, "a": replace(A, altered="99")}
    assert changes_since(replace(KNOWN, partitions=REWRITTEN, columns=altered)) == UnloggedChanges(
        rewritten=True, recomputed=True
    )
    assert not changes_since(replace(KNOWN, columns=altered)), "the statement changed no row"


def test_partitions_that_were_attached_or_detached_are_reported() -> None:
    low, top = TablePartition("public.low", "1", "5"), TablePartition("public.top", "2", "6")
    known = replace(KNOWN, partitions={"21": low})
    now = replace(KNOWN, partitions={"21": low, "22": top})
    names = schema("id", "a", "b")
    assert unlogged_changes(known, now, names, names) == UnloggedChanges(attached=("22",))
    assert unlogged_changes(now, known, names, names) == UnloggedChanges(detached=("public.top",))
    again = replace(known, partitions={"21": replace(low, joined="7")})
    assert unlogged_changes(known, again, names, names) == UnloggedChanges(rewritten=True, rejoined=True)


POSITIONAL = replace(KNOWN, positional=True)


@pytest.mark.parametrize(
    ("columns", "names", "words"),
    [
        ({"id": ID, "a": B, "b": A}, ("id", "a", "b"), ("columns a, b changed positions or names",)),
        ({"id": ID, "b": A}, ("id", "b"), ()),
        ({"id": ID, "z": A, "a": B, "b": ColumnIdentity(4, "text")}, ("id", "z", "a", "b"), ()),
    ],
    ids=["swapped", "after a dropped one", "after a new one"],
)
def test_the_order_of_columns_counts_where_rows_are_read_by_position(
    columns: dict[str, ColumnIdentity], names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    known = replace(POSITIONAL, columns={name: replace(one, type="t") for name, one in KNOWN.columns.items()})
    retyped = {name: replace(one, type="t", in_rows=True) for name, one in columns.items()}
    now = replace(known, columns=retyped)
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
def test_a_shorter_length_and_removed_labels_are_reported(
    before: dict[str, Any], after: dict[str, Any], word: str
) -> None:
    known = replace(KNOWN, columns={**KNOWN.columns, "b": replace(B, **before)})
    found = unlogged_changes(
        known, replace(known, columns={**KNOWN.columns, "b": replace(B, **after)}), schema("id", "b"), schema("id", "b")
    )
    assert bool(found) == bool(word) and word in "".join(found.columns)


def test_rows_are_searched_for_a_new_column_while_the_copy_lacks_it() -> None:
    new = ColumnIdentity(4, "int4", in_rows=True)
    now = replace(KNOWN, columns={**KNOWN.columns, "z": new}, last_number=4)
    assert changes_since(now, "id", "a", "b", "z") == UnloggedChanges(added=("z",))
    held, wanted = schema("id", "a", "b"), schema("id", "a", "b", "z")
    assert unlogged_changes(now, now, held, wanted).added == ("z",), "the catalog was read after the statement"
    assert not unlogged_changes(now, now, wanted, wanted)


def test_a_replaced_table_of_the_same_name_is_reported() -> None:
    assert changes_since(replace(KNOWN, table="20000")).rows == (
        "the table was replaced by another one of the same name",
    )


SENDS_ALL = StreamSettings("insert, update, delete, truncate", "owner 10", "749")


@pytest.mark.parametrize(
    ("now", "word", "doubted"),
    [
        (SENDS_ALL, "", ""),
        (replace(SENDS_ALL, carried="insert, update, truncate", altered="750"), "the stream carried other changes", ""),
        (replace(SENDS_ALL, altered="751"), "was altered", ""),
        (replace(SENDS_ALL, others="owner 20", altered="751"), "", "was altered"),
        (None, "", ""),
    ],
)
def test_settings_of_the_stream_that_changed_are_reported_also_if_they_were_set_back(
    now: StreamSettings | None, word: str, doubted: str
) -> None:
    """Another setting may explain the alteration: then a comparison shows whether changes are missing."""
    carried = replace(KNOWN, membership="5", sent=SENDS_ALL)
    held = schema("id", "a", "b")
    changes = unlogged_changes(carried, replace(carried, sent=now), held, held)
    assert bool(changes.rows) == bool(word) and word in "".join(changes.rows)
    assert bool(changes.doubted) == bool(doubted) == changes.may_differ and doubted in changes.doubted
    assert not unlogged_changes(replace(carried, sent=None), replace(carried, sent=now), held, held)

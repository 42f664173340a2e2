"""Columns of sources without ids keep their identity when they are renamed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.column_ids import rename_columns, with_distinct_ids
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare

INT = LogicalType(Kind.INT32)
ID = Column("id", INT, False)
NAMES = ("a", "b", "c", "a#2")
steps = st.tuples(st.sampled_from(["add", "rename", "drop"]), st.sampled_from(NAMES), st.sampled_from(NAMES))


@dataclass
class Model:
    """``truth``: name → which column it is, a number that no other column gets. ``schema``: as a source announces
    it, by its statements and the columns that the copy has."""

    schema: TableSchema = field(default_factory=lambda: of_names())
    truth: dict[str, int] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def add(self, name: str) -> None:
        self.truth[name] = next(self.numbers)
        columns = with_distinct_ids((*self.schema.columns, Column(name, INT)))
        self.schema = replace(self.schema, columns=columns)

    def drop(self, name: str) -> None:
        del self.truth[name]
        self.schema = replace(self.schema, columns=tuple(one for one in self.schema.columns if one.name != name))

    def rename(self, before: str, after: str) -> None:
        self.truth[after] = self.truth.pop(before)
        self.schema = rename_columns(self.schema, {before: after})

    def apply(self, step: str, name: str, other: str) -> None:
        """Nothing if the table does not allow it."""
        if step == "add" and name not in self.truth:
            self.add(name)
        elif step == "rename" and name in self.truth and other not in self.truth:
            self.rename(name, other)
        elif step == "drop" and name in self.truth:
            self.drop(name)


def of_names(*columns: Column) -> TableSchema:
    return TableSchema("d.t", (ID, *columns), ("id",))


def changes(old: TableSchema, new: TableSchema) -> list[str]:
    return [str(change) for change in compare(old, new)]


def require_true_changes(old: TableSchema, held: dict[str, int], new: TableSchema, holds: dict[str, int]) -> None:
    """``held``, ``holds``: the columns before and after, as in ``Model.truth``."""
    names = {number: name for name, number in holds.items()}
    found = compare(old, new)
    assert all(change.is_certain for change in found)
    assert {(one.before.name, one.after.name) for one in found if one.before and one.after} == {
        (name, names[number]) for name, number in held.items() if names.get(number, name) != name
    }
    dropped = {one.before.name for one in found if one.kind is ChangeKind.DROP_COLUMN and one.before}
    assert dropped == {name for name, number in held.items() if number not in names}


@given(st.lists(steps, max_size=12))
def test_each_change_is_what_it_is(sequence: list[tuple[str, str, str]]) -> None:
    model = Model()
    for step in sequence:
        before, held = model.schema, dict(model.truth)
        model.apply(*step)
        require_true_changes(before, held, model.schema, model.truth)


@given(st.lists(steps.filter(lambda step: step[0] != "drop"), max_size=12), st.integers(0, 12))
def test_several_changes_at_once_are_what_they_are(sequence: list[tuple[str, str, str]], first: int) -> None:
    """A copy that is behind. A column that is dropped and added again in between is not distinguished."""
    model = Model()
    for step in sequence[:first]:
        model.apply(*step)
    before, held = model.schema, dict(model.truth)
    for step in sequence[first:]:
        model.apply(*step)
        require_true_changes(before, held, model.schema, model.truth)


def test_a_later_column_with_the_first_name_of_another_one_is_another_one() -> None:
    renamed, later = Column("b", INT, id="a"), Column("a", INT)
    both = of_names(renamed, later)
    assert changes(of_names(Column("a", INT)), both) == [
        "column a was renamed to b",
        "column a int32 was added",
    ]
    assert changes(both, of_names(*with_distinct_ids((renamed, later)))) == []
    assert changes(both, of_names(renamed, later, Column("z", INT))) == ["column z int32 was added"]


def test_two_columns_are_never_the_same_one() -> None:
    swapped = of_names(Column("a", INT, id="b"))
    assert changes(of_names(Column("a", INT), Column("b", INT)), swapped) == [
        "column b was renamed to a",
        "column a was dropped",
    ]


def test_a_column_with_the_first_name_of_another_one_is_renamed_as_itself() -> None:
    both = of_names(Column("b", INT, id="a"), Column("a", INT, id="a#2"))
    assert changes(both, rename_columns(both, {"a": "c"})) == ["column a was renamed to c"]
    later = of_names(*with_distinct_ids((Column("b", INT, id="a"), Column("a", INT))))
    assert changes(later, rename_columns(later, {"a": "c"})) == ["column a was renamed to c"]

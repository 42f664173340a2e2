"""Alterations on a server that commits each of them: an attempt that follows a killed one executes only the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, alterations
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange
from airflow_cdc_provider.targets.due_alterations import remaining

NAMES = "abcdef"


def column(name: str, kind: Kind = Kind.INT32) -> Column:
    return Column(name, LogicalType(kind))


def changes(dropped: str, renamed: str, widened: str = "") -> list[SchemaChange]:
    """``renamed``: pairs of an old and a new name."""
    return [
        *(SchemaChange(ChangeKind.DROP_COLUMN, before=column(name)) for name in dropped),
        *(SchemaChange(ChangeKind.RENAME, before=column(old), after=column(new)) for old, new in renamed.split()),
        *(SchemaChange(ChangeKind.WIDEN, before=column(name), after=column(name, Kind.INT64)) for name in widened),
    ]


def executed(names: set[str], done: list[Alteration]) -> set[str]:
    for one in done:
        assert one.column.name in names, f"{one.column.name} is not there"
        if one.kind is Alter.DROP:
            names = names - {one.column.name}
        if one.kind is Alter.RENAME and one.to:
            assert one.to.name not in names, f"{one.to.name} is taken"
            names = names - {one.column.name} | {one.to.name}
    return names


@pytest.mark.parametrize(
    ("before", "dropped", "renamed", "widened"),
    [
        ("ab", "", "bc ab", ""),
        ("bc", "c", "bc", ""),
        ("abc", "c", "bc ab", "b"),
        ("abcd", "ad", "ba cd", "ad"),
    ],
)
def test_none_is_executed_twice_wherever_the_attempt_before_was_killed(
    before: str, dropped: str, renamed: str, widened: str
) -> None:
    every = alterations(changes(dropped, renamed, widened), "", Alter.DROP)
    assert every is not None
    names = executed(set(before), list(every))
    for done in range(len(every) + 1):
        present = executed(set(before), list(every[:done]))
        due = remaining("here", present, every)
        assert executed(present, due) == names
        again = [one for one in every[:done] if one.kind is not Alter.WIDEN]
        assert not any(one in due for one in again)


@st.composite
def any_changes(draw: st.DrawFn) -> tuple[set[str], list[SchemaChange]]:
    before = draw(st.sets(st.sampled_from(NAMES), min_size=1, max_size=5))
    fate = {name: draw(st.sampled_from(["keep", "drop", "rename"])) for name in sorted(before)}
    kept = {name for name in before if fate[name] == "keep"}
    free = draw(st.permutations(sorted(set(NAMES) - kept)))
    old = [name for name in sorted(before) if fate[name] == "rename"]
    pairs = [f"{name}{new}" for name, new in zip(old, free, strict=False) if name != new]
    return before, changes("".join(name for name in before if fate[name] == "drop"), " ".join(pairs))


@given(any_changes(), st.data())
def test_the_rest_of_any_alterations_leads_to_the_same_columns(
    given_changes: tuple[set[str], list[SchemaChange]], data: st.DataObject
) -> None:
    before, found = given_changes
    every = alterations(found, "", Alter.DROP)
    if every is None:  # columns exchange their names
        return
    done = data.draw(st.integers(0, len(every)))
    present = executed(before, list(every[:done]))
    assert remaining("here", present, every) == list(every[done:])


def test_a_name_that_another_column_has_is_refused() -> None:
    (rename,) = alterations(changes("", "ab"), "", Alter.DROP) or ()
    with pytest.raises(Blocked, match="SCH003"):
        remaining("here", {"a", "b"}, [rename])


def test_a_column_that_somebody_dropped_cannot_be_renamed() -> None:
    (rename,) = alterations(changes("", "ab"), "", Alter.DROP) or ()
    with pytest.raises(Blocked, match="no column a"):
        remaining("here", {"c"}, [rename])


def test_a_dropped_column_that_the_target_lacks_is_passed_over() -> None:
    both = alterations(changes("ab", ""), "", Alter.DROP) or ()
    assert remaining("here", {"a"}, both) == [both[0]]
    assert remaining("here", {"b"}, both) == [both[1]]


def test_names_that_differ_in_case_alone_are_those_of_two_columns_where_the_target_has_both() -> None:
    (rename,) = alterations([SchemaChange(ChangeKind.RENAME, column("a"), column("b"))], "", Alter.DROP) or ()
    (drop,) = alterations(changes("b", ""), "", Alter.DROP) or ()
    assert remaining("here", {"a", "B"}, [rename], str) == [rename]
    assert remaining("here", {"B"}, [drop], str) == []
    with pytest.raises(Blocked, match="SCH003"):
        remaining("here", {"a", "B"}, [rename])
    assert remaining("here", {"B"}, [drop]) == [drop]

"""Which column is which, by the statements in a schema-change topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.message import RenamedTable
from airflow_cdc_provider.connectors.decoders.debezium.columns_by_history import ColumnIds, column_ids
from airflow_cdc_provider.connectors.decoders.debezium.statements import read_statements
from airflow_cdc_provider.connectors.decoders.debezium.table_history import renamed_tables, table_histories
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare

INT = LogicalType(Kind.INT32)
NAMES = ("a", "b", "c", "d")
clauses = st.tuples(
    st.sampled_from(["ADD", "RENAME", "CHANGE", "DROP"]), st.sampled_from(NAMES), st.sampled_from(NAMES)
)
Statement = dict[str, Any]


def statement(position: int, text: str, table: str, *columns: str, kind: str = "ALTER", **more: Any) -> Statement:
    definition = {"columns": [{"name": name} for name in columns], "primaryKeyColumnNames": ["id"]}
    return {
        "source": {"connector": "mysql", "file": "b.1", "pos": position, "snapshot": "false", **more},
        "databaseName": "d",
        "ddl": text,
        "tableChanges": [{"type": kind, "id": f'"d"."{table}"', "table": definition}],
    }


CREATED = statement(1, "CREATE TABLE t (…)", "t", "id", "v", kind="CREATE")
RENAMED = statement(2, "ALTER TABLE t RENAME COLUMN v TO w", "t", "id", "w")


def ids(
    statements: Iterable[Statement], copied: Iterable[str], row: Iterable[str], excluded: str = "", table: str = "d.t"
) -> ColumnIds | None:
    columns = [Column(name, INT) for name in copied]
    histories = table_histories(read_statements(statements))
    return column_ids(histories, [table], columns, [*row], lambda name: name not in excluded)


def renamed(statements: Iterable[Statement], copied: Iterable[str], row: Iterable[str], **more: str) -> dict[str, str]:
    """Earlier → new name of each column that certainly was renamed."""
    found = ids(statements, copied, row, **more)
    if found is None:
        return {}
    old = TableSchema("d.t", tuple(Column(name, INT) for name in copied), ())
    new = TableSchema("d.t", tuple(Column(name, INT, id=found.ids[name]) for name in row), ())
    return {one.before.name: one.after.name for one in compare(old, new) if one.before and one.after}


@dataclass
class Model:
    """``columns``: name → which column it is, a number that no other column gets."""

    columns: dict[str, int] = field(default_factory=lambda: {"id": -1, "a": -2, "b": -3})
    numbers: count[int] = field(default_factory=count)

    def clause(self, kind: str, name: str, other: str) -> str:
        """Empty if the table does not allow it."""
        if kind == "ADD" and name not in self.columns:
            self.columns[name] = next(self.numbers)
            return f"ADD COLUMN {name} int"
        if kind in ("RENAME", "CHANGE") and name in self.columns and other not in self.columns:
            self.columns[other] = self.columns.pop(name)
            return f"RENAME COLUMN {name} TO {other}" if kind == "RENAME" else f"CHANGE `{name}` {other} bigint"
        if kind == "DROP" and name in self.columns and len(self.columns) > 2:
            del self.columns[name]
            return f"DROP {name}"
        return ""


@given(st.lists(clauses, max_size=8), st.integers(0, 8), st.booleans())
def test_no_column_is_taken_for_another_one(sequence: list[tuple[str, str, str]], first: int, complete: bool) -> None:
    """``complete``: the topic has the statements from before the copy."""
    model = Model()
    statements = [statement(1, "CREATE TABLE t (…)", "t", *model.columns, kind="CREATE")]
    states = [dict(model.columns)]
    for position, step in enumerate(sequence, 2):
        if clause := model.clause(*step):
            statements.append(statement(position, f"ALTER TABLE t {clause}", "t", *model.columns))
            states.append(dict(model.columns))
    first = min(first, len(states) - 1)
    held, now = states[first], states[-1]
    kept = statements if complete else statements[first + 1 :]
    names = {number: name for name, number in now.items()}
    true = {name: names[number] for name, number in held.items() if names.get(number, name) != name}
    if ids(kept, held, now) is not None:
        assert renamed(kept, held, now) == true
    elif len(states) > 1:
        twice = sum(state.keys() == held.keys() or state.keys() == now.keys() for state in states)
        assert twice > 2 or held == now, "the statements show it"


def test_a_renamed_column_is_known_by_its_name_in_the_copy() -> None:
    assert ids([CREATED, RENAMED], ["id", "v"], ["id", "w"]) == ColumnIds({"id": "", "w": "v"}, {})


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("ALTER TABLE t RENAME COLUMN v TO w", ("id", "w")),
        ("ALTER TABLE `d`.`t` CHANGE COLUMN `v` `w` bigint NOT NULL, ADD z int FIRST", ("z", "id", "w")),
        ("ALTER TABLE t ADD (z int, y int), RENAME COLUMN V TO W", ("id", "w", "z", "y")),
        ("ALTER TABLE IF EXISTS t RENAME TO t, CHANGE v w int", ("id", "w")),
        ("/* by app */ ALTER ONLINE TABLE t CHANGE IF EXISTS v w int -- why", ("id", "w")),
    ],
)
def test_one_statement_suffices_if_the_earlier_ones_are_lost(text: str, after: tuple[str, ...]) -> None:
    assert renamed([statement(2, text, "t", *after)], ["id", "v"], after) == {"v": "w"}


def test_a_column_of_the_same_name_as_a_renamed_one_is_another_one() -> None:
    later = statement(3, "ALTER TABLE t ADD v int", "t", "id", "w", "v")
    again = statement(4, "ALTER TABLE t CHANGE v x int", "t", "id", "w", "x")
    assert renamed([CREATED, RENAMED, later], ["id", "v"], ["id", "w", "v"]) == {"v": "w"}
    assert renamed([CREATED, RENAMED, later, again], ["id", "v"], ["id", "w", "x"]) == {"v": "w"}
    replaced = statement(2, "ALTER TABLE t DROP v, ADD v int", "t", "id", "v")
    then = statement(3, "ALTER TABLE t CHANGE v x int", "t", "id", "x")
    assert ids([CREATED, replaced, then], ["id", "v"], ["id", "x"]) is None, "the copy may be on either side"


def test_a_rename_of_long_ago_does_not_count_for_other_columns_of_these_names() -> None:
    history = [
        CREATED,
        RENAMED,
        statement(3, "ALTER TABLE t ADD v int", "t", "id", "w", "v"),
        statement(4, "ALTER TABLE t DROP w", "t", "id", "v"),
        statement(5, "ALTER TABLE t DROP v", "t", "id"),
        statement(6, "ALTER TABLE t ADD w int", "t", "id", "w"),
    ]
    assert ids(history, ["id", "v"], ["id", "w"]) is None
    assert renamed(history[3:], ["id", "v"], ["id", "w"]) == {}


def test_missing_statements_in_between_rename_nothing() -> None:
    """Not even a column of the same name: it may have been dropped, and another one added."""
    later = statement(5, "ALTER TABLE t RENAME COLUMN v TO x", "t", "id", "x", "z")
    assert ids([CREATED, later], ["id", "v"], ["id", "x", "z"]) is None
    assert renamed([CREATED, later], ["id", "v", "z"], ["id", "x", "z"]) == {"v": "x"}


def test_a_statement_about_an_index_ends_nothing() -> None:
    index = statement(3, "CREATE UNIQUE INDEX i ON t (w)", "t", "id", "w")
    assert renamed([CREATED, RENAMED, index], ["id", "v"], ["id", "w"]) == {"v": "w"}


def test_repeated_messages_change_nothing() -> None:
    assert renamed([CREATED, RENAMED, CREATED, RENAMED], ["id", "v"], ["id", "w"]) == {"v": "w"}


@pytest.mark.parametrize(
    "other",
    [
        RENAMED | {"source": {**RENAMED["source"], "connector": "sqlserver"}},
        RENAMED | {"ddl": None},
        RENAMED | {"tableChanges": None},
        RENAMED | {"tableChanges": [{"type": "ALTER", "id": "d.t", "table": {}}]},
        RENAMED | {"ddl": "ALTER"},
        {"source": None},
        None,
        statement(2, "CREATE TABLE t (id int, w int)", "t", "id", "w", kind="CREATE"),
        statement(2, "CREATE TABLE `t` (…)", "t", "id", "w", kind="CREATE", snapshot="true"),
        statement(2, "ALTER TABLE t DROP v, ADD w int", "t", "id", "w"),
        statement(2, "ALTER TABLE u RENAME COLUMN v TO w", "u", "id", "w"),
    ],
    ids=["sqlserver", "no text", "no table", "no name", "cut", "no source", "null", "new", "read", "replaced", "other"],
)
def test_nothing_else_renames_a_column(other: Any) -> None:
    assert renamed([CREATED, other], ["id", "v"], ["id", "w"]) == {}


def test_a_column_that_was_not_copied_is_reported_with_the_name_that_it_had() -> None:
    found = ids([CREATED, RENAMED], ["id"], ["id", "w"], excluded="v")
    assert found == ColumnIds({"id": ""}, {"w": "v"})


def test_columns_keep_their_identity_when_their_table_is_renamed() -> None:
    moved = statement(3, "RENAME TABLE t TO u", "u", "id", "w")
    later = statement(4, "ALTER TABLE u RENAME COLUMN w TO x", "u", "id", "x")
    history = [CREATED, RENAMED, moved, later]
    assert renamed(history, ["id", "v"], ["id", "w"]) == {"v": "w"}
    assert renamed(history, ["id", "w"], ["id", "x"], table="d.u") == {"w": "x"}


def moved(position: int, before: str, after: str) -> Statement:
    return statement(position, f"RENAME TABLE {before} TO {after}", after, "id", "v")


def dropped(position: int, table: str) -> Statement:
    gone = statement(position, f"DROP TABLE `d`.`{table}`", table, kind="DROP")
    gone["tableChanges"][0]["table"] = None
    return gone


def names_now(*statements: Statement) -> dict[str, str]:
    found = renamed_tables(table_histories(read_statements(statements)))
    return {former.removeprefix("d."): one.name.removeprefix("d.") for former, one in found.items()}


def made(position: int, table: str) -> Statement:
    return statement(position, f"CREATE TABLE {table} (…)", table, "id", "v", kind="CREATE")


MOVED = moved(2, "t", "u")


@pytest.mark.parametrize(
    ("statements", "names"),
    [
        pytest.param([CREATED, MOVED], {"t": "u"}, id="renamed"),
        pytest.param([statement(2, "RENAME TABLE `d`.t TO d.u", "u", "id")], {"t": "u"}, id="the only statement"),
        pytest.param([statement(2, "ALTER TABLE t RENAME AS u, ADD z int", "u", "id", "z")], {"t": "u"}, id="altered"),
        pytest.param([CREATED, MOVED, moved(3, "u", "w")], {"t": "w", "u": "w"}, id="twice"),
        pytest.param([CREATED, MOVED, moved(3, "u", "t")], {"u": "t"}, id="and back"),
        pytest.param([CREATED, MOVED, dropped(3, "u")], {}, id="and dropped"),
        pytest.param([CREATED, MOVED, CREATED], {"t": "u"}, id="and sent again"),
        pytest.param([CREATED, MOVED, made(3, "t")], {}, id="another one"),
        pytest.param([CREATED, MOVED, made(3, "t"), dropped(4, "t")], {}, id="another one, dropped"),
        pytest.param([CREATED, made(1, "t2"), MOVED, moved(2, "t2", "t")], {"t2": "t"}, id="replaced"),
        pytest.param([CREATED, statement(2, "RENAME TABLE t TO e.u", "u", "id")], {}, id="from an unknown database"),
        pytest.param([CREATED, RENAMED], {}, id="a column"),
    ],
)
def test_a_former_name_leads_to_the_table_if_no_other_one_has_got_it(
    statements: list[Statement], names: dict[str, str]
) -> None:
    assert names_now(*statements) == names


def test_each_later_name_of_a_table_has_a_beginning() -> None:
    found = renamed_tables(table_histories(read_statements([CREATED, moved(2, "t", "u"), moved(3, "u", "w")])))
    at = {position: f"{1:016x}{position:016x}{0:08x}" for position in (2, 3)}
    assert found == {
        "d.t": RenamedTable("d.w", {"d.u": at[2], "d.w": at[3]}),
        "d.u": RenamedTable("d.w", {"d.w": at[3]}),
    }

"""Texts that mean something in some language are keys and values like others, in every target."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.loader.shard_checks import holds_shards
from tests.hostile_texts import TEXTS, VARIABLES, names
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import IN_SPARK, KITS, TargetKit
from tests.spark.contract.shards import Shard
from tests.spark.scripted_table import Row

pytestmark = pytest.mark.jvm

TEXT = LogicalType(Kind.TEXT)
KEY, VALUE, OTHER = Column("k", TEXT, nullable=False), Column("v", TEXT), Column("o", TEXT)
SCHEMA = TableSchema("public.t", (KEY, VALUE, OTHER), ("k",))
ALONE = "${env:PATH} %s :x ? {0} {fn now()} \\' \" ` -- /* # $1 \n {{ x }} %(x)s"
SOME_NAMES = (
    *names()[::30],
    "${env:HOME}",
    "back`tick",
    "a.b",
    "a b",
    'say "no"',
    "%(x)s",
    "_metadata",
    "\U0001f600",
    "?",
)
Change = Callable[[Sequence[Column], Sequence[str]], list[Column]]
NEXT = dict(zip(TEXTS, (*TEXTS[1:], TEXTS[0]), strict=True))


def row(key: str, value: str, other: str | None = "o") -> Row:
    return {"k": key, "v": value, "o": other}


def test_texts_are_keys_and_values(kit: TargetKit, tmp_path: Path) -> None:
    """Copied, inserted, changed as a whole and in part, moved to another key, deleted. A key that is alone in its batch
    is the bound of a merge."""
    table = KitTable(kit, tmp_path, SCHEMA)
    copied, inserted = TEXTS[::2], TEXTS[1::2]
    table.copy([row(text, text) for text in copied])
    changes = [table.insert(row(text, text)) for text in inserted]
    changes += [table.update(row(text, NEXT[text])) for text in copied]
    require_applied(table, changes)
    wanted = {text: (NEXT[text] if text in copied else text, "o") for text in TEXTS}
    assert found(table) == wanted
    changed, moved, gone = TEXTS[::3], TEXTS[1::3], TEXTS[2::3]
    changes = [table.update({"k": text, "o": text}, complete=False) for text in changed]
    changes += [one for text in moved for one in table.move({"k": text}, row(f"{text}'", text))]
    changes += [table.delete({"k": text}) for text in gone]
    require_applied(table, changes)
    wanted = {text: (wanted[text][0], text) for text in changed} | {f"{text}'": (text, "o") for text in moved}
    assert found(table) == wanted
    require_applied(table, [table.insert(row(ALONE, "v")), table.insert(row("key", "v"))])
    require_applied(table, [table.update(row(ALONE, "changed"))])
    require_applied(table, [table.delete(row(ALONE, "changed"))])
    assert found(table) == {**wanted, "key": ("v", "o")}


EACH_VARIABLE = [
    pytest.param(text, marks=() if text in ("${env:PATH}", "${env.PATH}") else pytest.mark.nightly)
    for text in VARIABLES
]
SHARING = [name for name in sorted(KITS) if holds_shards(name.removesuffix(IN_SPARK).split(" ")[0])]


@pytest.mark.nightly
@pytest.mark.parametrize("kit", SHARING, indirect=True)
def test_a_value_of_a_shard_is_only_a_value(kit: TargetKit, tmp_path: Path) -> None:
    """Merged, truncated, copied again beside the rows of others."""
    values = (ALONE, "x_cdc_t.y' OR '1' = '1", "%_*")
    tables = [Shard(kit, tmp_path, f"t{n}", Column("v", TEXT), value=value) for n, value in enumerate(values)]
    for table in tables:
        table.copy([table.row(1, "x"), table.row(2, "y")])
    for table in tables:
        require_applied(table, [table.update(table.row(1, table.value)), table.delete(table.row(2, "y"))])
    assert all(table.own() == [(1, table.value)] for table in tables)
    tables[0].apply([tables[0].truncate(), tables[0].insert(tables[0].row(4, "q"))])
    fence(tables[1], TableState.RESYNCING)
    tables[1].copy([tables[1].row(5, "r")])
    assert [table.own() for table in tables] == [[(4, "q")], [(5, "r")], [(1, values[2])]]


@pytest.mark.parametrize("text", EACH_VARIABLE)
def test_a_variable_is_only_a_text_wherever_it_is_alone(kit: TargetKit, tmp_path: Path, text: str) -> None:
    """As the name of the table and of its columns, as key, value, initial value. Its value is in no file."""
    key, value = (text, f"v{text}") if text in accepted(kit, tmp_path, (text, f"v{text}")) else ("k", "v")
    columns = (Column(key, TEXT, nullable=False), Column(value, TEXT))
    table = KitTable(kit, tmp_path, TableSchema(f"public.{text}", columns, (key,)))
    table.copy([{key: text, value: text}])
    require_applied(table, [table.update({key: text, value: "changed"}), table.insert({key: "b", value: text})])
    added = Column(f"n{text}", TEXT, initial=json.dumps(text))
    wider = TableSchema(table.schema.table, (*columns, added), (key,))
    require_applied(table, [table.alter(wider), table.insert({key: "c", value: "d", added.name: None})])
    assert sorted(table.rows(), key=str) == [(text, "changed", text), ("b", text, text), ("c", "d", None)]
    assert (control(table).table, control(table).schema) == (table.schema.table, wider)
    secret = os.environ["PATH"].encode()
    assert [file for file in tmp_path.rglob("*") if file.is_file() and secret in file.read_bytes()] == []


def found(table: KitTable) -> dict[str, tuple[str, str]]:
    rows = table.rows()
    by_key = {key: (value, other) for key, value, other in rows}
    assert len(by_key) == len(rows), "no key twice"
    return by_key


@pytest.mark.parametrize("candidates", [SOME_NAMES, pytest.param(names(), marks=pytest.mark.nightly)], ids=len)
def test_a_name_of_a_column_is_refused_or_is_only_a_name(
    kit: TargetKit, tmp_path: Path, candidates: tuple[str, ...]
) -> None:
    """Copied, changed as a whole and in part, added with an initial value, and read by the next batch."""
    allowed = accepted(kit, tmp_path, candidates)
    first, later = allowed[::2], allowed[1::2]
    columns = tuple(Column(name, TEXT, nullable=name not in first[:2]) for name in first)
    table = KitTable(kit, tmp_path / "t", TableSchema("public.t", columns, first[:2]))

    def row(number: int, *values: str) -> Row:
        return dict(
            zip(first, (str(number), "key", *(f"{number} {name}" for name in (*first[2:], *values))), strict=False)
        )

    table.copy([row(number) for number in range(6)])
    some = first[5:20]
    changes = [table.update(row(1) | dict.fromkeys(some, "changed"))]
    changes += [
        table.update({**dict(zip(first[:2], ("2", "key"), strict=True)), **dict.fromkeys(some, "part")}, complete=False)
    ]
    changes += [table.delete(row(3)), table.move(row(4), row(14)), table.insert(row(7))]
    require_applied(table, changes)
    wanted = {number: row(number) for number in (0, 5, 7, 14)}
    wanted |= {1: row(1) | dict.fromkeys(some, "changed"), 2: row(2) | dict.fromkeys(some, "part")}
    assert by_number(table) == wanted
    added = tuple(Column(name, TEXT, initial=json.dumps(name)) for name in later)
    wider = TableSchema("public.t", (*columns, *added), first[:2])
    early = table.update(row(0) | dict.fromkeys(some, "early"))
    changes = [early, table.alter(wider), table.insert({**row(8), **dict.fromkeys(later, "own")})]
    require_applied(table, changes)
    initial = dict(zip(later, later, strict=True))
    wanted = {number: {**values, **initial} for number, values in wanted.items()}
    wanted |= {8: {**row(8), **dict.fromkeys(later, "own")}, 0: wanted[0] | dict.fromkeys(some, "early")}
    assert by_number(table) == wanted


def _renamed(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    return [replace(column, name=name) for column, name in zip(columns, names, strict=True)]


def _widened(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    return [replace(column, type=LogicalType(Kind.INT64)) for column in columns]


def _dropped(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    return []


@pytest.mark.parametrize("change", [_renamed, _widened, _dropped])
@pytest.mark.parametrize("candidates", [SOME_NAMES, pytest.param(names(), marks=pytest.mark.nightly)], ids=len)
def test_a_change_of_a_column_with_any_name_is_made_or_stops_the_table(
    kit: TargetKit, tmp_path: Path, candidates: tuple[str, ...], change: Change
) -> None:
    """Half of the names are new ones. The rows stay, whether the target can make the change or not."""
    key, *others = accepted(kit, tmp_path, candidates)
    half = len(others) // 2
    before, after = others[:half], others[half : 2 * half]
    first = Column(key, TEXT, nullable=False, id="0")
    columns = [Column(name, LogicalType(Kind.INT32), id=str(number)) for number, name in enumerate(before, 1)]
    table = KitTable(kit, tmp_path / "t", TableSchema("public.t", (first, *columns), (key,)))
    table.rule = replace(table.rule, schema_changes=SchemaPolicy(rename=OnChange.APPLY, drop_column=OnDrop.DROP))
    values = range(half)
    table.copy([dict(zip(table.schema.names, ("a", *values), strict=True))])
    old, new = table.schema, TableSchema("public.t", (first, *change(columns, after)), (key,))
    result = table.apply([table.alter(new), table.insert(dict(zip(new.names, ("b", *values), strict=False)))])
    if result.outcome is Outcome.DONE:
        assert table.rows() == [(one, *values[: len(new.columns) - 1]) for one in "ab"]
    else:
        assert result.problem is not None and result.problem.code.startswith("SCH"), str(result.problem)
        table.schema = old
        assert table.rows() == [("a", *values)]


def require_applied(table: KitTable, changes: Sequence[ChangeRecord | list[ChangeRecord]]) -> None:
    result = table.apply(changes)
    assert result.outcome is Outcome.DONE, str(result.problem)


def accepted(kit: TargetKit, folder: Path, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """Without the names that the checks of the target refuse."""
    columns = tuple(Column(name, TEXT) for name in candidates)
    table = KitTable(kit, folder / "checked", TableSchema("public.t", columns, candidates[:1]))
    problems = table.job_tables().check([table.task()])
    refused = {name for problem in problems for name in problem.columns}
    assert [problem for problem in problems if not problem.columns] == []
    return tuple(name for name in candidates if name not in refused)


def by_number(table: KitTable) -> dict[int, Row]:
    rows = [dict(zip(table.schema.names, values, strict=True)) for values in table.rows()]
    return {int(row[table.schema.key[0]]): row for row in rows}

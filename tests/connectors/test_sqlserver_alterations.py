"""Statements that change a captured table: the copy equals the table, or it is stopped with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import HoleFound
from airflow_cdc_provider.connectors.sources.sqlserver.alterations import (
    Alteration,
    adds_null,
    keeps_values,
    rewritten,
    type_changes,
)
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.table.identity import unlogged_changes
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare
from tests.connectors.sqlserver_database import IDLE_S, Shop, apply, records
from tests.simulators.sqlserver.capture import Instance
from tests.simulators.sqlserver.tables import Col, Table

COLUMNS = (
    Col("id", "int", False),
    Col("a", "int"),
    Col("b", "int"),
    Col("v", "varchar(20)"),
    Col("at", "datetime2(7)"),
)

BREAKING = frozenset({ChangeKind.RENAME, ChangeKind.NARROW, ChangeKind.CHANGE_KEY})
SAME, STOPPED = "same", "stopped"
Step = Callable[[Shop, Table], None]


def retyped(name: str, kind: str, convert: Callable[[Any], Any] = lambda value: value, more: str = "") -> Step:
    def step(shop: Shop, table: Table) -> None:
        for row in table.rows.values():
            row[name] = None if row[name] is None else convert(row[name])
        columns = [replace(one, type=kind) if one.name == name else one for one in table.columns]
        shop.engine.alter(table, f"ALTER TABLE dbo.t ALTER COLUMN [{name}] {kind}{more}", columns)

    return step


def added(column: Col, definition: str, fill: Any = None) -> Step:
    def step(shop: Shop, table: Table) -> None:
        for row in table.rows.values():
            row[column.name] = fill
        shop.engine.alter(table, f"ALTER TABLE dbo.t ADD {definition}", [*table.columns, column])

    return step


def dropped(name: str) -> Step:
    def step(shop: Shop, table: Table) -> None:
        columns = [one for one in table.columns if one.name != name]
        shop.engine.alter(table, f"ALTER TABLE dbo.t DROP COLUMN {name}", columns)

    return step


def renamed(before: str, after: str) -> Step:
    """Not in the history. The server rejects it for captured columns, as far as known."""

    def step(shop: Shop, table: Table) -> None:
        table.columns = [replace(one, name=after) if one.name == before else one for one in table.columns]
        for row in table.rows.values():
            row[after] = row.pop(before)
        with shop.engine.writing():
            shop.engine.describe(table)
            shop.engine.show(table)

    return step


def rows(shop: Shop, table: Table) -> None:
    shop.update(table, 1, a=77)
    shop.insert(table, {"id": 100 + len(table.rows), **{one.name: 5 for one in table.columns if one.type == "int"
                                                        and one.name != "id"}})  # fmt: skip


def second_instance(shop: Shop, table: Table) -> None:
    shop.capture.scan()
    shop.capture.enable(table, "second")


def without_the_first_instance(shop: Shop, table: Table) -> None:
    first: Instance = shop.capture.instances[0]
    shop.capture.disable(first)


def captured(shop: Shop, _table: Table) -> None:
    shop.capture.scan()


Z = Col("z", "int")
CASES: list[tuple[str, list[Step], str]] = [
    ("longer text", [retyped("v", "varchar(30)"), rows], SAME),
    ("longer text without a limit", [retyped("v", "varchar(max)"), rows], SAME),
    ("NOT NULL", [retyped("a", "int", more=" NOT NULL"), rows], SAME),
    ("shorter text", [retyped("v", "varchar(10)"), rows], STOPPED),
    ("Unicode text", [retyped("v", "nvarchar(20)"), rows], STOPPED),
    ("another collation", [retyped("v", "varchar(20)", more=" COLLATE Latin1_General_BIN2"), rows], STOPPED),
    ("int to bigint", [retyped("a", "bigint"), rows], STOPPED),
    ("fewer digits of a second", [retyped("at", "datetime2(0)", lambda at: at[:19]), rows], STOPPED),
    (
        "fewer digits of a second, and as many again",
        [retyped("at", "datetime2(0)", lambda at: at[:19]), retyped("at", "datetime2(7)", lambda at: f"{at}.0000000")],
        STOPPED,
    ),
    ("int to text", [retyped("a", "varchar(20)", str), rows], STOPPED),
    ("dropped", [dropped("v"), rows], SAME),
    ("dropped and added again", [dropped("v"), added(Col("v", "varchar(20)"), "v varchar(20)")], STOPPED),
    ("dropped and added again, captured", [dropped("v"), added(Col("v", "varchar(20)"), "v varchar(20)"),
                                           second_instance, rows], STOPPED),
    ("added, no rows", [added(Z, "z int NULL")], SAME),
    ("added, not captured, rows", [added(Z, "z int NULL"), rows], STOPPED),
    ("added and captured, rows after", [added(Z, "z int NULL"), second_instance, rows], SAME),
    ("added, captured, no rows", [added(Z, "z int NULL"), second_instance], SAME),
    ("added, rows, captured", [added(Z, "z int NULL"), rows, second_instance, rows], STOPPED),
    ("rows, added, captured, rows", [rows, added(Z, "z int NULL"), second_instance, rows], SAME),
    (
        "added and captured, the old instance dropped before a run",
        [added(Z, "z int NULL"), second_instance, without_the_first_instance, rows],
        STOPPED,
    ),
    ("added with a default", [added(Col("z", "int", False, True), "z int NOT NULL DEFAULT 5", 5), second_instance,
                              rows], STOPPED),
    (
        "added with a default that is then dropped",
        [added(Col("z", "int", False, True), "z int NOT NULL DEFAULT 5", 5), retyped("z", "int"), second_instance],
        STOPPED,
    ),
    ("renamed", [renamed("v", "w"), rows], STOPPED),
    ("two columns swap their names", [renamed("a", "x"), renamed("b", "a"), renamed("x", "b")], STOPPED),
    ("another capture instance of the same columns", [second_instance, rows], SAME),
    ("the old capture instance dropped in time", [rows, captured, second_instance, rows], SAME),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_the_copy_equals_the_table_or_is_stopped_with_a_reason(
    tmp_path: Path, steps: list[Step], expected: str
) -> None:
    shop = Shop(tmp_path)
    table = shop.table("dbo.t", *COLUMNS)
    shop.insert(
        table, *({"id": n, "a": n, "b": -n, "v": f"v{n}", "at": "2026-01-02 03:04:05.1234567"} for n in range(3))
    )
    task = shop.task("dbo.t")
    shop.window(task)
    copy, copied = shop.copied(task)
    held = copy.schema
    for step in steps:
        step(shop, table)
    reason = stopped(shop, copied, held, copy)
    assert (STOPPED if reason else SAME) == expected, reason
    if not reason:
        truth = shop.truth(shop.task("dbo.t"))
        names = shop.task("dbo.t").schema.names
        assert {key: {name: row.get(name) for name in names} for key, row in copied.items()} == truth


def stopped(shop: Shop, copied: dict[str, dict[str, Any]], held: TableSchema, copy: Any) -> str:
    """Windows until there is nothing new, applied as runs do. Why they stop, else empty."""
    known = copy.identity
    for _ in range(4):
        shop.sleep(IDLE_S)
        task = shop.task("dbo.t", held)
        now = shop.source.identities(["dbo.t"])["dbo.t"]
        changes = unlogged_changes(known, now, held, task.schema)
        if changes:
            return "; ".join((*changes.columns, *changes.rows))
        items = shop.window(task, scan=False)
        for item in items:
            if isinstance(item, HoleFound) and item.order_key > copy.floor:
                return item.detail
            if isinstance(item, ChangeRecord) and "initial_unknown" in item.warnings:
                return "the value of a new column in older rows is unknown"
            if isinstance(item, TableSchema):
                if breaking := [change for change in compare(held, item) if change.kind in BREAKING]:
                    return "; ".join(map(str, breaking))
                held = item
        apply(copied, records(items), held, copy.floor)
        known = now
    return ""


@pytest.mark.parametrize(
    ("before", "after", "keeps"),
    [
        ("varchar(20)", "varchar(20)", True), ("varchar(20)", "varchar(max)", True),
        ("varchar(max)", "varchar(9)", False),
        ("decimal(9,2)", "numeric(10, 2)", True), ("decimal(9,2)", "decimal(9,3)", False),
        ("decimal(18,0)", "dec", True),
        ("int", "integer", True), ("int", "bigint", False), ("datetime2(7)", "datetime2", True),
        ("datetime2(7)", "datetime2(3)", False), ("char(5)", "char(6)", False), ("float(53)", "float", True),
        ("rowversion", "timestamp", True), ("nvarchar(5)", "varchar(5)", False), ("dbo.name", "dbo.name", True),
    ],
)  # fmt: skip
def test_only_conversions_that_keep_each_value_and_its_text_keep_values(before: str, after: str, keeps: bool) -> None:
    assert keeps_values(before, after) is keeps


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE t ALTER COLUMN v varchar(10)", [("v", "varchar(10)", False)]),
        ("alter table t alter column [a ]] b]]c] [decimal] ( 9 , 2 ) not null", [("a ] b]c", "decimal(9,2)", False)]),
        ('ALTER TABLE t ALTER COLUMN "q""d" int', [('q"d', "int", False)]),
        ("ALTER TABLE t ALTER COLUMN v varchar(9) COLLATE Latin1_General_BIN NULL", [("v", "varchar(9)", True)]),
        ("ALTER TABLE t /* ALTER COLUMN x int */ ALTER COLUMN -- y\n v nvarchar(max)", [("v", "nvarchar(max)", False)]),
        ("ALTER TABLE t ALTER COLUMN v ADD SPARSE", []),
        ("ALTER TABLE t ADD z int", []),
    ],
)
def test_new_types_are_read_from_a_statement(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert [(one.column, one.type, one.collated) for one in type_changes(text)] == expected


def test_statements_are_compared_with_the_types_that_earlier_ones_left() -> None:
    natives = {"V": "varchar(20)", "other": "int"}
    assert not list(rewritten(Alteration(1, "ALTER TABLE t ALTER COLUMN v varchar(30)"), natives))
    assert natives["V"] == "varchar(30)"
    (what,) = rewritten(Alteration(2, "ALTER TABLE t ALTER COLUMN v varchar(25)"), natives)
    assert what == "column V changed from varchar(30) to varchar(25)"


@pytest.mark.parametrize(
    ("texts", "known"),
    [
        (["ALTER TABLE t ADD z int NULL"], True), (["ALTER TABLE t ADD y int, [z] int"], True),
        (["ALTER TABLE t ADD z int NOT NULL DEFAULT 3"], False),
        (["ALTER TABLE t ADD z int DEFAULT 3 WITH VALUES"], False),
        (["ALTER TABLE t ADD z int", "ALTER TABLE t DROP COLUMN z"], False), ([], False),
        (["ALTER TABLE t ADD zz int"], False), (["ALTER TABLE t ADD z int -- DEFAULT 3"], True),
        (["ALTER TABLE t ALTER COLUMN z int"], False),
    ],
)  # fmt: skip
def test_a_new_column_is_null_in_older_rows_only_if_one_plain_statement_added_it(texts: list[str], known: bool) -> None:
    alterations = [Alteration(number, text) for number, text in enumerate(texts)]
    assert (adds_null(alterations, "z") is not None) is known

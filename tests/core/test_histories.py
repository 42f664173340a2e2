"""Histories: the schema of their tables, what cannot have one, and what each change makes of its row."""

from __future__ import annotations

from dataclasses import asdict, replace

import pyarrow as pa
import pytest

from airflow_cdc_provider.connectors.copied.reading import may_hold, source_task, source_tasks
from airflow_cdc_provider.core.columns.copied import source_schema
from airflow_cdc_provider.core.log.carry_over import Truncate
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord
from airflow_cdc_provider.core.spec.copies import copies_of, rule_of_copy
from airflow_cdc_provider.core.spec.definition import Definition, OnDelete, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.history_problems import history_problems
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.history import history_of, row_schema, stored_schema
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from airflow_cdc_provider.core.table.special_values import Special
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.folds.lives import FoldError, Rules
from spark_jobs.folds.versions import TIMED_ENTRIES, VersionFold

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
ROWS = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT), Column("w", TEXT)), ("id",))
RULES = Rules(ROWS.names, ROWS.key, {})
HISTORIES = (History.SCD2, History.LOG)


@pytest.mark.parametrize("history", HISTORIES)
def test_the_schema_of_a_history_contains_that_of_its_rows(history: History) -> None:
    stored = stored_schema(history, ROWS)
    assert history_of(stored) is history and history_of(ROWS) is History.NONE
    rows = row_schema(stored)
    assert (rows.names, rows.key) == (ROWS.names, ROWS.key)
    assert source_schema(stored) == rows
    assert stored_schema(History.NONE, ROWS) == row_schema(ROWS) == ROWS
    assert set(stored.key) == {"id", "_cdc_sequence"}


@pytest.mark.parametrize("history", HISTORIES)
def test_the_source_has_no_values_in_the_columns_of_a_history(history: History) -> None:
    class Anything:
        def may_hold(self, column: Column) -> frozenset[Special]:
            return frozenset(Special)

    held = may_hold(Anything())  # type: ignore[arg-type]
    assert [column.name for column in stored_schema(history, ROWS).columns if held(column)] == ["id", "v", "w"]


def test_a_table_without_key_or_order_has_no_versions() -> None:
    def codes(history: History, schema: TableSchema) -> list[str]:
        return [one.code for one in history_problems(TableRule("public.t", history=history), schema)]

    keyless, unordered = replace(ROWS, key=()), replace(ROWS, regime=Regime.UNORDERED)
    assert [codes(history, keyless) for history in History] == [[], ["DEF080"], ["DEF080"]]
    assert [codes(history, unordered) for history in History] == [[], ["DEF081"], []]
    assert [codes(history, ROWS) for history in History] == [[], [], []]
    assert codes(History.NONE, replace(ROWS, table="public.t:history")) == ["DEF084"]


def test_a_history_beside_a_copy_has_a_name_a_target_and_a_rule_of_its_own() -> None:
    rule = TableRule("public.*", "{table}", on_delete=OnDelete.SOFT, history=History.SCD2)
    assert list(copies_of(rule, "public.t", ["default"])) == [("public.t", rule)]
    beside = replace(rule, history_target="{table}_history")
    copies = dict(copies_of(beside, "public.t", ["default"]))
    assert list(copies) == ["public.t", "public.t:history"]
    assert [source_table(name) for name in copies] == ["public.t"] * 2
    copy, history = copies.values()
    assert (copy.history, copy.target, copy.on_delete) == (History.NONE, "{table}", OnDelete.SOFT)
    assert (history.history, history.target, history.on_delete) == (History.SCD2, "{table}_history", OnDelete.HARD)
    assert rule_of_copy(beside, "public.t", ["default"], "public.t:history") == history
    assert rule_of_copy(rule, "public.t", ["default"], "public.t:history") is None


def test_a_table_with_a_history_beside_its_copy_is_selected_twice_and_read_once() -> None:
    rule = TableRule("public.t", history=History.LOG, history_target="t_log")
    definition = Definition(
        name="shop",
        source=Source("postgres", "db"),
        target=Target("delta", "/lake"),
        tables=(rule,),
        staging=Staging("/staging"),
    )
    selections, problems = select(definition, [ROWS], lambda table: table.removeprefix("public."))
    assert problems == ()
    assert [(one.table, one.target) for one in selections] == [("public.t", "t"), ("public.t:history", "t_log")]
    assert len({one.definition_sha256 for one in selections}) == 2
    tasks = [one.task(TableState.PENDING) for one in selections]
    assert [task.name_in_source for task in tasks] == ["public.t"] * 2
    assert [task.schema.names[-1] for task in tasks] == ["w", "_cdc_missing_columns"]
    read = source_tasks(reversed(tasks))
    assert [(task.table, task.schema) for task in read] == [("public.t", ROWS)]
    assert [source_task(task).schema.names for task in tasks] == [ROWS.names] * 2
    _, problems = select(definition, [replace(ROWS, key=())], lambda table: table)
    assert [(one.code, one.table) for one in problems] == [("DEF080", "public.t:history")]
    same = replace(definition, tables=(replace(rule, history_target="T"),))
    assert {one.code for one in select(same, [ROWS], lambda table: "t")[1]} == {"DEF015"}


def change(order: int, op: str, key: int, after: str | None = None, whole: bool = True, **more: object) -> ChangeRecord:
    of_key = {"key_before": f"[{key}]"} if op == "delete" else {"key": f"[{key}]"}
    return ChangeRecord(
        "public.t", op, f"{order:02d}", "s", after=after, after_complete=whole and op != "delete", **of_key, **more
    )  # type: ignore[arg-type]


def folded(*records: ChangeRecord, truncates: tuple[int, ...] = (), rules: Rules = RULES) -> list[tuple[object, ...]]:
    """Key, order, LIVE or GONE, image, known columns, and the key of the row that has the others."""
    rows = [{name: asdict(record)[name] for name in TIMED_ENTRIES.names} for record in records]
    fold = VersionFold(rules, tuple(Truncate(f"{order:02d}", None) for order in truncates))
    made = fold.rows(pa.Table.from_pylist(rows, TIMED_ENTRIES)).to_pylist()
    named = ("key", "order_key", "op", "image", "known", "root")
    return sorted(tuple(row[name] for name in named) for row in made)


def test_each_change_makes_a_row_or_ends_it() -> None:
    a, b = '{"id":1,"v":"a","w":"x"}', '{"id":1,"v":"b"}'
    assert folded(change(3, "delete", 1), change(1, "update", 1, a), change(2, "update", 1, b, whole=False)) == [
        ("[1]", "01", "U", a, None, None),
        ("[1]", "02", "U", '{"id":1,"v":"b","w":"x"}', None, None),
        ("[1]", "03", "D", "{}", [], None),
    ]
    assert folded(change(1, "update", 1, b, whole=False)) == [
        ("[1]", "01", "U", '{"id":1,"v":"b"}', ["id", "v"], "[1]")
    ]


def test_a_truncate_ends_the_rows_before_it_and_those_after_it_have_nothing_of_them() -> None:
    a, b = '{"id":1,"v":"a","w":"x"}', '{"id":1,"v":"b"}'
    found = folded(change(1, "insert", 1, a), change(3, "upsert", 1, b, whole=False), truncates=(2,))
    assert found == [
        ("[1]", "01", "U", a, None, None),
        ("[1]", "02", "D", "{}", [], None),
        ("[1]", "03", "U", '{"id":1,"v":"b"}', None, None),
    ]
    with pytest.raises(FoldError):
        folded(change(1, "insert", 1, a), change(3, "update", 1, b, whole=False), truncates=(2,))


def test_a_row_that_moves_without_all_its_columns_has_those_of_the_row_that_departed() -> None:
    leaves = change(1, "delete", 1, phase=DEPARTS, link_id="l")
    arrives = change(2, "insert", 2, '{"id":2,"v":"b"}', whole=False, phase=ARRIVES, link_id="l")
    assert folded(leaves, arrives) == [
        ("[1]", "01", "D", "{}", [], None),
        ("[2]", "02", "U", '{"id":2,"v":"b"}', ["id", "v"], "[1]"),
    ]
    kept = replace(RULES, ignore_deletes=True)
    assert [row[0] for row in folded(leaves, arrives, rules=kept)] == ["[2]"]
    assert folded(change(1, "delete", 1), rules=kept) == []

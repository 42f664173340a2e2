"""Histories: the schema of their tables, what cannot have one, and what each change makes of its row."""

from __future__ import annotations

from dataclasses import asdict, replace

import pyarrow as pa
import pytest

from airflow_cdc_provider.core.columns.copied import source_schema
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, ChangeRecord
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.history_problems import history_problems
from airflow_cdc_provider.core.table.history import history_of, row_schema, stored_schema
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from spark_jobs.folds.lives import FoldError, Rules
from spark_jobs.folds.versions import TIMED_ENTRIES, Truncate, VersionFold

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


def test_a_table_without_key_or_order_has_no_versions() -> None:
    def codes(history: History, schema: TableSchema) -> list[str]:
        return [one.code for one in history_problems(TableRule("public.t", history=history), schema)]

    keyless, unordered = replace(ROWS, key=()), replace(ROWS, regime=Regime.UNORDERED)
    assert [codes(history, keyless) for history in History] == [[], ["DEF080"], ["DEF080"]]
    assert [codes(history, unordered) for history in History] == [[], ["DEF081"], []]
    assert [codes(history, ROWS) for history in History] == [[], [], []]


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

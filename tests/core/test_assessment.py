"""Assessments, copy times and drafts, without any system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.assessment.assess import TypeRules, assess_table
from airflow_cdc_provider.core.assessment.copy_rate import LEAST_ROWS, CopyRate, copy_seconds, measured_rate
from airflow_cdc_provider.core.assessment.draft import Draft, DraftTable, columns_to_exclude, draft_table
from airflow_cdc_provider.core.assessment.support import Support, TableAssessment
from airflow_cdc_provider.core.assessment.texts import duration_text, size_text
from airflow_cdc_provider.core.columns.copied import CopiedColumns
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import MYSQL, POSTGRESQL, may_hold
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.table_size import TableSize
from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.loader.draft import draft_text
from airflow_cdc_provider.targets.mysql.sql import MysqlSql

SCHEMA = TableSchema(
    "public.item",
    (
        Column("id", LogicalType(Kind.INT64), nullable=False, native="bigint"),
        Column("name", LogicalType(Kind.TEXT), native="text"),
        Column("until", LogicalType(Kind.DATE), native="date"),
    ),
    ("id",),
)
WITHOUT_DATE = replace(SCHEMA, columns=SCHEMA.columns[:2])
SQL = MysqlSql("shop")


def task(schema: TableSchema = SCHEMA) -> TableTask:
    return TableTask(schema.table, "public_item", schema, TableRule(schema.table), "", TableState.PENDING)


def rules(system: Any = POSTGRESQL) -> TypeRules:
    return TypeRules(
        lambda column: may_hold(column, system),
        lambda column, in_key: frozenset(),
        lambda schema: [column.type.kind.upper() for column in schema.columns],
        lambda column, in_key: "",
    )


def assessed(schema: TableSchema, problems: Sequence[Problem] = (), omitted: bool = False) -> TableAssessment:
    return assess_table(task(schema), SCHEMA, problems, rules(), omitted)


def test_a_table_without_problems_and_special_values_is_supported() -> None:
    found = assessed(WITHOUT_DATE)
    assert (found.support, found.excluded, found.key) == (Support.YES, ("until",), ("id",))
    assert [(one.source_type, one.target_type) for one in found.columns] == [("bigint", "INT64"), ("text", "TEXT")]


def test_a_column_with_values_that_the_copy_cannot_hold_is_partly_supported() -> None:
    found = assessed(SCHEMA)
    (until,) = found.with_support(Support.PARTIAL)
    assert found.support is Support.PARTIAL and until.name == "until"
    assert "infinite times" in until.findings[0].reason
    assert "`columns: {cast: {until: text}}`" in until.findings[0].suggestion


def test_a_hashed_column_has_the_type_of_its_source() -> None:
    rule = TableRule(SCHEMA.table, columns=Columns(hash=("name",)))
    columns = CopiedColumns(rule, SCHEMA, b"k" * 16).columns
    found = assessed(replace(SCHEMA, columns=tuple(one.column for one in columns)))
    assert [column.source_type for column in found.columns] == ["bigint", "text", "date"]


def test_a_long_key_names_the_limit_of_the_target() -> None:
    key = TableSchema("shop.t", (Column("code", LogicalType(Kind.TEXT), native="longtext"),), ("code",))
    limits = TypeRules(
        lambda column: may_hold(column, MYSQL),
        SQL.unsupported_values,
        lambda schema: [SQL.column_type(column, column.name in schema.key) for column in schema.columns],
        lambda column, in_key: str(SQL.restriction(column, in_key) or ""),
    )
    (column,) = assess_table(task(key), key, (), limits).columns
    assert column.target_type.startswith("VARCHAR(")
    assert "the target requires at most" in column.findings[0].reason


def test_a_problem_of_the_table_is_a_no_with_its_code() -> None:
    problem = Problem("SRC009", "no key", found="default", allowed="full", do="ALTER TABLE …", table="public.item")
    found = assessed(WITHOUT_DATE, [problem])
    assert found.support is Support.NO
    (finding,) = found.findings
    assert (finding.code, finding.suggestion) == ("SRC009", "ALTER TABLE …")
    assert finding.reason == "no key: default; allowed: full"


def test_a_problem_of_a_column_leaves_the_rest_of_the_table() -> None:
    found = assessed(WITHOUT_DATE, [Problem("SRC118", "type", columns=("name",), table="public.item")])
    assert found.support is Support.PARTIAL
    assert [column.support for column in found.columns] == [Support.YES, Support.NO]
    assert columns_to_exclude(found) == ("name",)


def test_a_table_that_its_rule_omits_is_not_supported_even_if_only_columns_have_problems() -> None:
    problem = Problem("DEF026", "a reserved name", columns=("name",), table="public.item")
    found = assessed(WITHOUT_DATE, [problem], omitted=True)
    assert (found.support, columns_to_exclude(found)) == (Support.NO, ("name",))


def test_a_problem_of_a_key_column_is_one_of_the_table() -> None:
    found = assessed(WITHOUT_DATE, [Problem("SRC118", "type", columns=("id",), table="public.item")])
    assert found.support is Support.NO
    assert columns_to_exclude(found) == ()


def test_a_problem_of_columns_that_are_not_copied_is_one_of_the_table() -> None:
    found = assessed(WITHOUT_DATE, [Problem("SRC062", "gone", columns=("gone",), table="public.item")])
    assert [finding.code for finding in found.findings] == ["SRC062"]


PROBLEMS = st.builds(
    Problem,
    st.sampled_from(["SRC001", "SRC009", "SRC118", "TGT015"]),
    st.just("a problem"),
    table=st.just("public.item"),
    columns=st.lists(st.sampled_from(["id", "name", "until", "gone"]), max_size=3, unique=True).map(tuple),
)


@given(st.lists(PROBLEMS, max_size=4))
def test_every_problem_of_a_table_is_a_finding_of_it_or_of_its_columns(problems: list[Problem]) -> None:
    found = assessed(SCHEMA, problems)
    of_columns = [finding for column in found.columns for finding in column.findings]
    assert {finding.code for finding in (*found.findings, *of_columns)} - {""} == {one.code for one in problems}
    assert found.support is not Support.YES
    for column in found.columns:
        named = any(column.name in problem.columns for problem in problems)
        assert (column.support is Support.NO) == named
    rest = replace(SCHEMA, columns=tuple(one for one in SCHEMA.columns if one.name not in columns_to_exclude(found)))
    left = [problem for problem in problems if not set(problem.columns) & set(columns_to_exclude(found))]
    if columns_to_exclude(found):
        assert assessed(rest, left).support is not Support.NO, "without these columns the table can be copied"


def test_the_slower_rate_and_the_known_size_determine_the_time_of_a_copy() -> None:
    rate = CopyRate(100.0, 1000.0)
    assert copy_seconds(TableSize(1000, 5000), rate) == 10
    assert copy_seconds(TableSize(1000, 50_000), rate) == 50
    assert copy_seconds(TableSize(None, 5000), rate) == 5
    assert copy_seconds(TableSize(1000, None), rate) == 10
    assert copy_seconds(TableSize(None, 5000), CopyRate(100.0)) is None
    assert copy_seconds(TableSize(), rate) is None
    assert copy_seconds(TableSize(1000, 5000), None) is None


def test_earlier_copies_of_enough_rows_determine_the_rate() -> None:
    def copied(rows: int, outcome: Outcome = Outcome.DONE, **phases: float) -> TableResult:
        return TableResult("t", outcome, rows, phases=phases)

    results = [
        StepResult(StepKind.SNAPSHOT, "a", (copied(100_000, copy=8.0, read=2.0, upkeep=99.0), copied(5, copy=3.0))),
        StepResult(StepKind.RESYNC, "b", (copied(100_000, copy=10.0), copied(LEAST_ROWS, Outcome.FAILING, copy=1.0))),
        StepResult(StepKind.MERGE, "c", (copied(900_000, merge=1.0),)),
    ]
    assert measured_rate(results) == CopyRate(10_000.0, copies=2)
    assert measured_rate(results[2:]) is None
    assert measured_rate([]) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.1, "1 s"), (119, "119 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_times_are_short(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("size", "text"), [(None, ""), (0, "0 B"), (2048, "2 KiB"), (3 << 30, "3 GiB")])
def test_sizes_are_short(size: int | None, text: str) -> None:
    assert size_text(size) == text


SOURCE = {"type": "postgres", "connection": "shop_db", "publication": "cdc_shop"}
TARGET = {"type": "delta", "location": "/data/lake/shop"}


def draft(*tables: DraftTable, **more: Any) -> Draft:
    return Draft("shop", SOURCE, TARGET, "/data/lake/_cdc", tables, **more)


def test_a_draft_is_a_definition_with_its_reasons_beside_the_entries() -> None:
    keyless = replace(WITHOUT_DATE, table="public.keyless", key=())
    bad = Problem("SRC009", "no key", do="ALTER TABLE x;", table="public.keyless")
    table = replace(assessed(WITHOUT_DATE), size=TableSize(1200, 3 << 20), copy_s=2.0)
    bad_table = assessed(keyless, [bad])
    text = draft_text(
        draft(
            draft_table(table, table), draft_table(bad_table, bad_table), notes=("careful",), statements=("CREATE …",)
        )
    )
    assert text.splitlines()[:2] == ["# careful", "#   CREATE …"]
    assert "  # 1,200 rows, 3 MiB, key (id), first copy about 2 s\n  - source: public.item\n" in text
    assert "  # no key\n  # SRC009 no key\n  #   ALTER TABLE x;\n  # - source: public.keyless\n" in text
    definition = load_text(text.encode(), "shop.yaml").definition
    assert [rule.source for rule in definition.tables] == ["public.item"]


def test_a_draft_excludes_columns_that_cannot_be_copied() -> None:
    found = assessed(WITHOUT_DATE, [Problem("SRC118", "a type", do="exclude it", columns=("name",), table="x")])
    without = assessed(replace(WITHOUT_DATE, columns=WITHOUT_DATE.columns[:1]))
    text = draft_text(draft(draft_table(found, without)))
    assert "# SRC118 a type" in text and "exclude it" not in text, "it is done already"
    (rule,) = load_text(text.encode(), "shop.yaml").definition.tables
    assert rule.columns.exclude == ("name",)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Co", "Cn"]), min_size=1, max_size=12)
ANY_TEXT = st.text(max_size=40)


@given(
    st.lists(
        st.builds(DraftTable, NAMES, st.lists(NAMES, max_size=2).map(tuple), st.lists(ANY_TEXT, max_size=2).map(tuple),
                  st.lists(ANY_TEXT, max_size=2).map(tuple), st.booleans()),
        min_size=1, max_size=4,
    ),
    st.lists(ANY_TEXT, max_size=2),
)  # fmt: skip
def test_no_name_and_no_text_of_a_server_changes_what_a_draft_means(tables: list[DraftTable], notes: list[str]) -> None:
    parsed = yaml.safe_load(draft_text(draft(*tables, notes=tuple(notes), statements=tuple(notes))))
    assert parsed["source"] == SOURCE and parsed["target"] == TARGET
    expected = [
        {"source": one.source, **({"columns": {"exclude": list(one.exclude)}} if one.exclude else {})}
        for one in tables
        if not one.disabled
    ]
    assert (parsed["tables"] or []) == expected

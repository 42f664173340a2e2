"""Which tables and columns a definition selects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.nearest import did_you_mean, nearest
from airflow_cdc_provider.core.spec.definition import (
    Columns,
    Comparison,
    Condition,
    Definition,
    OnDelete,
    Source,
    Staging,
    TableRule,
    Target,
    rule_fingerprint,
)
from airflow_cdc_provider.core.spec.selection import Selection, matches, select
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

TEXT = LogicalType(Kind.TEXT)


def table(name: str, *columns: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(name, tuple(Column(c, TEXT) for c in columns or ("id", "note")), key)


def definition(*rules: TableRule) -> Definition:
    return Definition(
        name="shop",
        source=Source("postgres", "shop_db"),
        target=Target("delta", "/lake"),
        tables=rules,
        staging=Staging("/staging"),
    )


def folded(source: str) -> str:
    return source.removeprefix("public.").replace(".", "__").lower()


def run(rules: list[TableRule], described: list[TableSchema]) -> tuple[dict[str, Selection], tuple[Problem, ...]]:
    selections, problems = select(definition(*rules), described, folded)
    return {s.table: s for s in selections}, problems


def codes(problems: tuple[Problem, ...]) -> list[tuple[str, str]]:
    return [(p.code, p.where) for p in problems]


def test_a_plain_rule_selects_its_table_with_all_columns_and_the_key_of_the_source() -> None:
    selected, problems = run([TableRule("public.orders")], [table("public.orders"), table("public.other")])
    assert problems == ()
    assert list(selected) == ["public.orders"]
    orders = selected["public.orders"]
    assert orders.target == "orders"
    assert orders.schema == table("public.orders")
    assert orders.definition_sha256 == rule_fingerprint(definition(), TableRule("public.orders"))


def test_a_pattern_selects_every_matching_table_and_a_plain_name_precedes_it() -> None:
    soft = TableRule("public.orders", on_delete=OnDelete.SOFT)
    selected, problems = run(
        [TableRule("public.*"), soft], [table("public.orders"), table("public.a"), table("sales.b")]
    )
    assert problems == ()
    assert list(selected) == ["public.a", "public.orders"]
    assert selected["public.orders"].rule.source == soft.source


def test_of_two_matching_patterns_the_first_in_the_file_counts() -> None:
    narrow, wide = TableRule("public.o*", on_delete=OnDelete.IGNORE), TableRule("public.*")
    described = [table("public.orders"), table("public.a")]
    selected, _ = run([narrow, wide], described)
    assert selected["public.orders"].rule.source == narrow.source
    assert selected["public.a"].rule.source == wide.source


def test_a_pattern_is_no_regular_expression() -> None:
    assert matches("public.a?c", "public.abc")
    assert not matches("public.a?c", "publicXabc")
    assert not matches("public.[ab]", "public.a")
    assert not matches("public.*", "PUBLIC.a")
    assert matches("*", "a.b\nc")


def test_a_missing_table_does_not_stop_other_tables() -> None:
    selected, problems = run([TableRule("public.ordes"), TableRule("public.orders")], [table("public.orders")])
    assert list(selected) == ["public.orders"]
    assert codes(problems) == [("DEF041", "public.ordes")]
    assert "'public.orders'" in problems[0].do


def test_a_pattern_that_matches_nothing_is_a_problem() -> None:
    _, problems = run([TableRule("sales.*")], [table("public.orders")])
    assert codes(problems) == [("DEF023", "sales.*")]


def test_a_pattern_whose_tables_all_have_plain_rules_is_no_problem() -> None:
    selected, problems = run([TableRule("public.*"), TableRule("public.a")], [table("public.a")])
    assert (list(selected), problems) == (["public.a"], ())


def test_a_selection_of_more_than_five_hundred_tables_is_refused() -> None:
    described = [table(f"public.t{n}") for n in range(501)]
    selected, problems = run([TableRule("public.*")], described)
    assert selected == {}
    assert codes(problems) == [("DEF024", "shop")]
    assert problems[0].found == "501 tables"
    assert len(run([TableRule("public.*")], described[:500])[0]) == 500


def test_excluded_columns_are_not_in_the_schema() -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("note",)))
    selected, _ = run([rule], [table("public.a", "id", "note", "total")])
    assert selected["public.a"].schema.names == ("id", "total")


def test_included_columns_keep_the_order_of_the_source() -> None:
    rule = TableRule("public.a", columns=Columns(include=("total", "id")))
    selected, _ = run([rule], [table("public.a", "id", "note", "total")])
    assert selected["public.a"].schema.names == ("id", "total")


def test_a_misspelled_excluded_column_is_a_problem_because_the_column_would_be_copied() -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("nota",)))
    selected, problems = run([rule], [table("public.a")])
    assert selected == {}
    assert codes(problems) == [("DEF042", "public.a")]
    assert "'note'" in problems[0].do


def test_a_pattern_may_exclude_a_column_that_only_some_tables_have() -> None:
    rule = TableRule("public.*", columns=Columns(exclude=("note",)))
    selected, problems = run([rule], [table("public.a"), table("public.b", "id")])
    assert (list(selected), problems) == (["public.a", "public.b"], ())


def test_a_pattern_that_excludes_a_column_no_table_has_is_a_problem() -> None:
    rule = TableRule("public.*", columns=Columns(exclude=("nota",)))
    _, problems = run([rule], [table("public.a"), table("public.b")])
    assert codes(problems) == [("DEF042", "public.*")]


def test_a_key_of_the_definition_replaces_the_key_of_the_source() -> None:
    rule = TableRule("public.a", key=("note", "id"))
    selected, _ = run([rule], [table("public.a")])
    assert selected["public.a"].schema.key == ("note", "id")


def test_unknown_key_filter_and_cluster_columns_are_all_reported_at_once() -> None:
    rule = TableRule("public.a", key=("idd",), where=(Condition("stat", Comparison.IS_NULL),), cluster_by=("nope",))
    selected, problems = run([rule], [table("public.a", "id", "state")])
    assert selected == {}
    assert [p.found for p in problems] == ["idd", "stat", "nope"]


def test_an_excluded_key_column_is_a_problem() -> None:
    for columns in (Columns(exclude=("id",)), Columns(include=("note",))):
        selected, problems = run([TableRule("public.a", columns=columns)], [table("public.a")])
        assert selected == {}
        assert codes(problems) == [("DEF021", "public.a")]


def test_a_filter_on_an_excluded_column_is_a_problem() -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("note",)), where=(Condition("note", Comparison.EQUAL, "x"),))
    assert codes(run([rule], [table("public.a")])[1]) == [("DEF021", "public.a")]


def test_a_column_with_a_reserved_name_is_a_problem_until_it_is_excluded() -> None:
    described = [table("public.a", "id", "_CDC_order")]
    assert codes(run([TableRule("public.a")], described)[1]) == [("DEF026", "public.a")]
    rule = TableRule("public.a", columns=Columns(exclude=("_CDC_order",)))
    assert list(run([rule], described)[0]) == ["public.a"]


@pytest.mark.parametrize("other", ["ID", "\u0130d", "\u0131D"])
def test_columns_that_differ_by_case_only_are_a_problem(other: str) -> None:
    _, problems = run([TableRule("public.a")], [table("public.a", "id", other)])
    assert codes(problems) == [("DEF025", "public.a")]
    assert problems[0].found == f"id, {other}"


def test_names_that_no_system_takes_for_one_are_no_problem() -> None:
    names = ("id", "e\u0301", "\u00e9", "\u00df", "ss", "\ufb01", "fi", "\u0430", "a")
    assert run([TableRule("public.a")], [table("public.a", *names)])[1] == ()


def test_two_tables_with_one_target_name_are_both_left_out() -> None:
    described = [table("public.Orders"), table("public.orders"), table("public.a")]
    selected, problems = run([TableRule("public.*")], described)
    assert list(selected) == ["public.a"]
    assert codes(problems) == [("DEF015", "public.Orders"), ("DEF015", "public.orders")]


def test_a_given_target_name_is_kept_and_collides_case_insensitively() -> None:
    rules = [TableRule("public.a", target="X"), TableRule("public.b", target="x")]
    assert run(rules[:1], [table("public.a")])[0]["public.a"].target == "X"
    assert run(rules, [table("public.a"), table("public.b")])[0] == {}


def test_soft_deletes_without_a_key_are_a_problem() -> None:
    rule = TableRule("public.a", on_delete=OnDelete.SOFT)
    assert codes(run([rule], [table("public.a", key=())])[1]) == [("DEF044", "public.a")]
    assert list(run([replace(rule, key=("id",))], [table("public.a", key=())])[0]) == ["public.a"]


def test_a_table_without_any_remaining_column_is_a_problem() -> None:
    rule = TableRule("public.a", columns=Columns(exclude=("id",)))
    assert ("DEF043", "public.a") in codes(run([rule], [table("public.a", "id", key=())])[1])


def test_a_selection_becomes_a_task() -> None:
    selection = run([TableRule("public.a")], [table("public.a")])[0]["public.a"]
    task = selection.task(TableState.PENDING)
    assert (task.table, task.target, task.schema, task.state, task.control) == (
        "public.a",
        "a",
        selection.schema,
        TableState.PENDING,
        None,
    )


def test_the_nearest_name_is_found_case_insensitively_and_random_text_has_none() -> None:
    assert nearest("TABELS", ["target", "tables"]) == "tables"
    assert nearest("zzz", ["target", "tables"]) == ""
    assert did_you_mean("zzz", ["tables"]) == ""

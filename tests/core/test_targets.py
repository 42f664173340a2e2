"""Several targets of one replicator: the names of their copies, their rules, and their tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.connectors.copied.reading import source_tasks
from airflow_cdc_provider.core.decisions.listed_tables import gone_tables, separate_new_tables
from airflow_cdc_provider.core.decisions.renamed_tables import under_copied_names
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.copies import copies_of
from airflow_cdc_provider.core.spec.dag_plan import asset_name, asset_uri, plan
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.history_problems import history_problems
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.core.spec.table_policy import OnNewTable
from airflow_cdc_provider.core.table.copies import copy_name, history_name, source_table, target_of_copy
from airflow_cdc_provider.core.table.published_cut import select_cut_tables
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

ROWS = TableSchema("public.t", (Column("id", LogicalType(Kind.INT64)),), ("id",))
LAKE, WAREHOUSE = Target("delta", "/lake"), Target("postgres", connection="wh", name="wh")
AT = "2026-01-01T00:00:00.000Z"


def definition(*rules: TableRule, targets: tuple[Target, ...] = (LAKE, WAREHOUSE)) -> Definition:
    return Definition(
        name="shop",
        source=Source("postgres", "db"),
        targets=targets,
        tables=rules or (TableRule("public.t"),),
        staging=Staging("/staging"),
    )


def folded(copy: str) -> str:
    return source_table(copy).replace(".", "_")


def selected(found: Definition) -> list[tuple[str, str]]:
    return [(one.table, one.target) for one in select(found, [ROWS], folded)[0]]


@pytest.mark.parametrize("target", ["default", "wh", "w_2"])
def test_the_name_of_a_copy_contains_its_table_and_its_target(target: str) -> None:
    for name in (copy_name("public.t", target), history_name(copy_name("public.t", target))):
        assert (source_table(name), target_of_copy(name)) == ("public.t", target)
    assert copy_name("public.t", "default") == "public.t"


def test_a_table_whose_name_is_that_of_a_copy_is_refused() -> None:
    def codes(name: str) -> list[str]:
        return [one.code for one in history_problems(TableRule(name), replace(ROWS, table=name))]

    assert codes("public.t@wh") == ["DEF084"]
    assert codes("public.t@Wh") == codes("public.t@") == codes("public.@t.x") == []


def test_every_target_has_a_copy_and_a_rule_may_choose() -> None:
    rule = TableRule("public.t", "{table}", history=History.SCD2, history_target="{table}_history")
    names = ["public.t", "public.t:history", "public.t@wh", "public.t@wh:history"]
    assert list(dict(copies_of(rule, "public.t", ("default", "wh")))) == names
    chosen = replace(rule, targets=("wh",))
    assert list(dict(copies_of(chosen, "public.t", ("default", "wh")))) == names[2:]
    assert selected(definition()) == [("public.t", "public_t"), ("public.t@wh", "public_t")]
    assert selected(definition(TableRule("public.t", targets=("wh",)))) == [("public.t@wh", "public_t")]


def test_two_tables_may_have_the_same_name_in_different_targets_only() -> None:
    other = replace(ROWS, table="public.u")

    def codes(*rules: TableRule) -> set[str]:
        return {one.code for one in select(definition(*rules), [ROWS, other], folded)[1]}

    one, there = TableRule("public.t", "x", ("default",)), TableRule("public.u", "x", ("wh",))
    assert codes(one, there) == set()
    assert codes(one, replace(there, targets=())) == {"DEF015"}


def test_the_problems_of_a_table_are_reported_once() -> None:
    found = select(definition(TableRule("public.t", key=("missing",))), [ROWS], folded)[1]
    assert [(one.code, one.table) for one in found] == [("DEF042", "public.t")]


def test_one_target_and_a_list_of_one_are_the_same() -> None:
    one = replace(definition(targets=()), target=LAKE)
    listed = definition(targets=(LAKE,))
    assert selected(one) == selected(listed) == [("public.t", "public_t")]
    assert one.only_target == listed.only_target == LAKE
    assert one.with_target("default") == listed.with_target("default") == one


def test_the_definition_of_the_copies_in_a_target_has_this_target_alone() -> None:
    found = definition()
    assert [found.with_target(name).all_targets for name in ("default", "wh")] == [(LAKE,), (WAREHOUSE,)]


def test_a_definition_is_restored_from_its_plain_form() -> None:
    for found in (definition(), replace(definition(targets=()), target=WAREHOUSE)):
        assert from_plain(Definition, to_plain(found)) == found
    before = to_plain(replace(definition(targets=()), target=LAKE))
    del before["targets"], before["target"]["name"], before["tables"][0]["targets"]
    assert from_plain(Definition, before).only_target == LAKE, "an earlier version wrote it"


def test_the_source_is_read_once() -> None:
    tasks = [one.task(TableState.PENDING) for one in select(definition(), [ROWS], folded)[0]]
    assert [task.table for task in source_tasks(tasks)] == ["public.t"]


def row(copy: str, state: TableState = TableState.REPLICATING, passed: int = 3) -> TableRow:
    return TableRow(copy, "t", state, AT, passed=passed)


def test_the_copies_in_a_target_that_is_not_listed_any_more_are_left() -> None:
    rows = {copy: row(copy) for copy in ("public.t", "public.t@wh", "public.t@old")}
    assert [one.table for one in gone_tables(definition(), (), rows)] == ["public.t", "public.t@wh"]


def test_a_new_table_is_reported_once_and_known_under_any_of_its_copies() -> None:
    asking = replace(definition(TableRule("public.*", targets=("wh",))), new_tables=OnNewTable.IGNORE)
    selections, _ = select(asking, [ROWS], folded)
    both, _ = select(definition(TableRule("public.*")), [ROWS], folded)
    assert [one.table for one in separate_new_tables(asking, selections, {"x"}, (), {})[1]] == ["public.t@wh"]
    assert [one.table for one in separate_new_tables(asking, both, {"x"}, (), {})[1]] == ["public.t"]
    assert separate_new_tables(asking, both, {"public.t"}, (), {}) == (both, ())


def test_a_table_with_a_copy_in_any_target_is_not_taken_for_a_renamed_one() -> None:
    renamed = {"public.old": "public.t"}
    assert under_copied_names([ROWS], renamed, {"public.old@wh": row("public.old@wh")})[1] == renamed
    assert under_copied_names([ROWS], renamed, {"public.t@wh": row("public.t@wh")})[1] == {}


def test_a_cut_is_of_the_copies_of_one_target() -> None:
    behind = [row("public.t"), row("public.t@wh", TableState.FAILING, 2)]
    assert select_cut_tables(behind, 3) == ()
    assert select_cut_tables([one for one in behind if target_of_copy(one.table) == "default"], 3) == (behind[0],)


def test_assets_and_the_description_name_every_target() -> None:
    found = definition(targets=(LAKE, replace(LAKE, location="s3://b/two", name="two")))
    assert asset_uri(found, "public.t", "t") == "file:///lake/t"
    assert asset_uri(found, "public.t@two", "t") == "s3://b/two/t"
    assert (asset_name("shop", "public.t", "t"), asset_name("shop", "public.t@wh", "t")) == (
        "cdc/shop/t",
        "cdc/shop/wh/t",
    )
    assert plan(definition()).description == "copies of postgres tables in delta and postgres, kept exact"

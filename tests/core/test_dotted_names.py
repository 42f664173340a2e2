"""Rules, targets and shards of tables whose names have dots."""

from __future__ import annotations

import pytest
import yaml

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.lineage.dataset_names import source_dataset
from airflow_cdc_provider.core.log.change_log import table_folder, table_of_folder
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.loader.draft import scalar
from airflow_cdc_provider.targets.naming import default_name
from tests.core.test_selection import codes, run, table

TWINS = ('a."b.c"', '"a.b".c')
BOTH = [*map(table, TWINS), table("a.t")]


@pytest.mark.parametrize("name", TWINS)
def test_a_rule_selects_the_table_of_its_parts(name: str) -> None:
    selected, problems = run([TableRule(name)], BOTH)
    assert (list(selected), problems) == ([name], ())


def test_a_rule_without_quotes_names_the_spellings_of_the_source() -> None:
    selected, (problem,) = run([TableRule("a.b.c")], BOTH)
    assert not selected and (problem.code, problem.where) == ("DEF041", "a.b.c")
    assert problem.allowed == ", ".join(sorted(TWINS))
    spelled = [yaml.safe_load(text.strip("`")) for text in problem.do.removeprefix("write ").split(" or ")]
    assert [one["source"] for one in spelled] == sorted(TWINS)


def test_a_rule_with_needless_quotes_names_the_table_without_them() -> None:
    _, (problem,) = run([TableRule('"a"."t"')], BOTH)
    assert (problem.code, problem.allowed) == ("DEF041", "a.t")


def test_a_name_of_three_parts_is_none_of_two() -> None:
    selected, problems = run([TableRule("a.b.c")], [*BOTH, table("a.b.c")])
    assert (list(selected), problems) == (["a.b.c"], ())


def test_a_pattern_matches_the_text_with_its_quotes() -> None:
    selected, problems = run([TableRule("a.*")], BOTH)
    assert (sorted(selected), problems) == (sorted(['a."b.c"', "a.t"]), ())
    selected, problems = run([TableRule('"a.b".*')], BOTH)
    assert (list(selected), problems) == (['"a.b".c'], ())
    _, problems = run([TableRule("a.b.*")], BOTH)
    assert codes(problems) == [("DEF023", "a.b.*")] and problems[0].allowed == ", ".join(sorted(TWINS))


def test_placeholders_are_the_parts_of_the_name() -> None:
    rule = TableRule("*", target="{schema}__{table}")
    selected, problems = run([rule], BOTH)
    assert problems == ()
    assert [selected[name].target for name in TWINS] == ["a__b_c", "a_b__c"]
    shards = TableRule("*", target="t", shard_column="s", shard_value="{schema}")
    selected, _ = run([shards], [table("a.t"), table('"a.b".t')])
    assert {name: one.rule.shard_value for name, one in selected.items()} == {"a.t": "a", '"a.b".t': "a.b"}


def test_equal_default_names_of_two_tables_are_a_problem_and_not_one_target() -> None:
    assert [default_name(name) for name in TWINS] == ["a_b_c", "a_b_c"]
    assert default_name('public."b.c"') == "b_c"


def test_a_folder_of_the_change_log_means_one_table() -> None:
    assert [table_of_folder(table_folder(name)) for name in TWINS] == list(TWINS)


def test_a_draft_is_read_as_the_same_names() -> None:
    assert [yaml.safe_load(scalar(name)) for name in TWINS] == list(TWINS)


def test_a_data_set_has_the_database_before_the_parts() -> None:
    info = ConnectionInfo("db", "h", schema="shop")
    names = [source_dataset(Source("postgres", "db"), info, name).name for name in (*TWINS, "a.t")]
    assert names == ['shop.a."b.c"', 'shop."a.b".c', "shop.a.t"]


def test_a_topic_means_a_copied_table_if_only_one_has_its_text() -> None:
    copied = {name: CopiedTable(TableRule(name)) for name in ('a."b.c"', "a.t")}
    settings = DecoderSettings(tables=copied, names={"x.y": "a.t"})
    found = {text: settings.table_of_topic(text) for text in ("a.b.c", "a.t", "x.y", "o.t")}
    assert found == {"a.b.c": 'a."b.c"', "a.t": "a.t", "x.y": "a.t", "o.t": "o.t"}

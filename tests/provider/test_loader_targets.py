"""Several targets in the YAML of a replicator."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.dag_doc import dag_doc
from airflow_cdc_provider.loader import load_folder
from airflow_cdc_provider.loader.schema import json_schema
from tests.provider.shop_yaml import FOLDERS, GOOD, load, problems

WAREHOUSE = "{name: wh, type: postgres, connection: wh, schema: shop}"
TWO = GOOD.replace(f"target: {FOLDERS}", f"targets:\n  - {FOLDERS}\n  - {WAREHOUSE}")
TABLE = "  - source: public.orders\n"


def test_a_list_of_targets_is_loaded_with_their_names() -> None:
    found = load(TWO.replace(TABLE, f"{TABLE}    targets: [wh]\n"))
    assert found.target is None
    assert found.all_targets == (
        Target("delta", "/data/lake/shop"),
        Target("postgres", connection="wh", options=found.targets[1].options, name="wh"),
    )
    assert (found.target_names, found.tables[0].targets) == (("default", "wh"), ("wh",))


@pytest.mark.parametrize(
    ("text", "code", "location"),
    [
        (GOOD.replace(f"target: {FOLDERS}\n", ""), "DEF011", "1:1 target"),
        (TWO + f"target: {FOLDERS}\n", "DEF100", "10:9 target"),
        (TWO.replace("name: wh, ", ""), "DEF101", "6:5 targets[1].name"),
        (TWO.replace("name: wh", "name: default"), "DEF101", "6:12 targets[1].name"),
        (TWO.replace("name: wh", "name: Wh"), "DEF013", "6:12 targets[1].name"),
        (TWO.replace(WAREHOUSE, FOLDERS.replace("{", "{name: b, ")), "DEF102", "6:38 targets[1].location"),
        (TWO.replace(TABLE, f"{TABLE}    targets: [lake]\n"), "DEF103", "9:15 tables[0].targets[0]"),
        (TWO.replace(TABLE, f"{TABLE}    targets: []\n"), "DEF020", "9:14 tables[0].targets"),
        (GOOD.replace("target:", "target: null #"), "DEF018", "4:9 target"),
        (GOOD.replace("target:", "taget:"), "DEF010", "4:1 taget"),
        (TWO.replace(TABLE, f"{TABLE}  - source: public.ORDERS\n"), "DEF015", "9:5 tables[1].target"),
        (
            TWO.replace(FOLDERS, "{type: delta, location: s3://lake/a, connection: one}").replace(
                WAREHOUSE, "{name: b, type: delta, location: s3://lake/b, connection: two}"
            ),
            "DEF050",
            "6:63 targets[1].connection",
        ),
    ],
)
def test_a_mistake_about_targets_is_reported_once(text: str, code: str, location: str) -> None:
    assert [(one.code, one.where) for one in problems(text)] == [(code, f"shop.yaml:{location}")]


def test_tables_of_one_name_may_be_in_different_targets() -> None:
    chosen = f"{TABLE}    targets: [wh]\n  - source: public.ORDERS\n    targets: [default]\n"
    assert [rule.targets for rule in load(TWO.replace(TABLE, chosen)).tables] == [("wh",), ("default",)]


def test_two_replicators_with_a_common_target_clash(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(TWO)
    (tmp_path / "two.yaml").write_text(GOOD.replace("name: shop", "name: two"))
    assert {problem.code for problem in load_folder(tmp_path).problems} == {"DEF015"}


REDSHIFT = "type: redshift, connection: c, stage: s3://lake/x"
APART = {
    "databases of Snowflake": "type: snowflake, connection: c, database: {}, schema: PUBLIC",
    "projects of BigQuery": "type: bigquery, connection: c, project: {}, dataset: lake",
    "instances of Spanner": "type: spanner, connection: c, instance: {}, database: shop",
    "schemas of Redshift": f"{REDSHIFT}, schema: {{}}",
    "schemas of PostgreSQL": "type: postgres, connection: c, schema: {}",
    "namespaces of Iceberg": "type: iceberg, location: /lake, catalog: {}",
}


@pytest.mark.parametrize("target", APART.values(), ids=APART)
def test_targets_are_apart_by_each_part_of_their_location(target: str) -> None:
    def text(one: str, other: str) -> str:
        listed = f"  - {{{target.format(one)}}}\n  - {{name: other, {target.format(other)}}}"
        return GOOD.replace(f"target: {FOLDERS}", f"targets:\n{listed}")

    assert len(load(text("first", "second")).targets) == 2
    assert [problem.code for problem in problems(text("first", "first"))] == ["DEF102"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{REDSHIFT}, schema: Shop", f"{REDSHIFT}, schema: shop"),
        ("type: iceberg, location: /lake", "type: iceberg, location: /lake/, catalog: lake.cdc"),
    ],
)
def test_a_location_has_several_spellings(one: str, other: str) -> None:
    listed = f"  - {{{one}}}\n  - {{name: other, {other}}}"
    (problem,) = problems(GOOD.replace(f"target: {FOLDERS}", f"targets:\n{listed}"))
    assert problem.code == "DEF102"


LEFT_OUT = [APART["projects of BigQuery"], f"{APART['instances of Spanner'].format('one')}, project: {{}}"]


@pytest.mark.parametrize("target", LEFT_OUT)
@pytest.mark.parametrize("named_first", [True, False])
def test_a_project_that_one_target_leaves_to_the_connection_may_be_that_of_the_other(
    target: str, named_first: bool
) -> None:
    named, left_out = target.format("p"), target.replace(", project: {}", "")
    one, other = (named, left_out) if named_first else (left_out, named)
    (problem,) = problems(GOOD.replace(f"target: {FOLDERS}", f"targets:\n  - {{{one}}}\n  - {{name: other, {other}}}"))
    assert problem.code == "DEF102"
    assert "`connection`" in problem.found and "`project`" not in problem.found, "what both of them name"


def test_an_iceberg_catalog_is_no_part_of_a_folder() -> None:
    one, other = "type: iceberg, location: /lake", "type: iceberg, connection: rest"
    listed = f"  - {{{one}}}\n  - {{name: other, {other}}}"
    assert len(load(GOOD.replace(f"target: {FOLDERS}", f"targets:\n{listed}")).targets) == 2


def test_replicators_of_one_table_may_be_in_several_databases_of_a_warehouse(tmp_path: Path) -> None:
    for name in ("prod", "test"):
        place = f"{{type: snowflake, connection: sf, database: {name}, schema: PUBLIC}}"
        text = GOOD.replace("name: shop", f"name: {name}").replace(FOLDERS, place)
        (tmp_path / f"{name}.yaml").write_text(text.replace("/cdc", f"/cdc_{name}"))
    assert (sorted(load_folder(tmp_path).loaded), load_folder(tmp_path).problems) == (["prod", "test"], ())


def test_replicators_with_the_same_targets_may_have_a_table_in_different_ones(tmp_path: Path) -> None:
    for name, chosen in (("one", "default"), ("two", "wh")):
        text = TWO.replace("name: shop", f"name: {name}").replace(TABLE, f"{TABLE}    targets: [{chosen}]\n")
        (tmp_path / f"{name}.yaml").write_text(text.replace("/cdc", f"/cdc_{name}"))
    assert (sorted(load_folder(tmp_path).loaded), load_folder(tmp_path).problems) == (["one", "two"], ())


def test_the_schema_requires_one_of_the_keys() -> None:
    schema = json_schema()
    assert schema["oneOf"] == [{"required": ["target"]}, {"required": ["targets"]}]
    assert "target" not in schema["required"]
    assert schema["properties"]["targets"]["items"]["oneOf"] == schema["properties"]["target"]["oneOf"]


def test_the_documentation_of_the_dag_names_every_target() -> None:
    doc = dag_doc(load(TWO))
    assert "to **delta** at `/data/lake/shop` (`default`) and to **postgres** at `wh, schema shop` (`wh`)." in doc

"""The published schema and the tables of the documentation."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from airflow_cdc_provider.loader import load_text
from airflow_cdc_provider.loader.schema import json_schema
from airflow_cdc_provider.reference.files import METRICS, PAGE, SCHEMA, SCHEMA_CHANGES, main
from airflow_cdc_provider.reference.keys import key_table
from airflow_cdc_provider.reference.target_changes import TARGETS, applied_changes
from tests.spark.pipelines.schema_changes import test_policies as policies

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "dags" / "replicators").glob("*.yaml"))


def shop() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "dags" / "replicators" / "shop.yaml").read_text())
    return loaded


def test_the_documentation_is_up_to_date() -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0


def test_a_stale_file_fails_the_check_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (PAGE, SCHEMA, SCHEMA_CHANGES, METRICS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    schema = tmp_path / SCHEMA
    schema.write_text("{}")
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert schema.read_text() == "{}"
    assert main(["--write", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"out of date: {SCHEMA}\nwritten: {SCHEMA}\n"
    assert main(["--check", "--root", str(tmp_path)]) == 0


def test_a_page_without_markers_is_named(tmp_path: Path) -> None:
    page = tmp_path / PAGE
    page.parent.mkdir(parents=True)
    page.write_text("no markers")
    with pytest.raises(SystemExit, match=r"replicator\.md lacks"):
        main(["--check", "--root", str(tmp_path)])


def test_every_key_is_in_the_table_with_its_default() -> None:
    table = key_table()
    assert "| `staging.retain` | duration | `7d` |" in table
    assert "| `source.publication` | text | **required** | Type `postgres`: " in table
    assert "| `tables[].where[].value` | value or list of values |" in table


TITLES = {
    "integers grow": "`int16` → `int32`",
    "more digits": "`decimal(10,2)` → `decimal(14,2)`",
    "more decimals": "`decimal(10,2)` → `decimal(14,4)`",
    "real to double": "`float32` → `float64`",
    "date to timestamp": "`date` → `timestamp`",
    "rename": "a renamed column",
    "rename of the key": "a renamed column of the key",
    "drop, kept": "a dropped column, `keep`",
    "drop, dropped": "a dropped column, `drop`",
    "drop, without values": "a dropped column, `set_null`",
    "a narrower type is copied": "any other type",
    "another key is copied": "another key",
}
"""Cases of the contract of the targets → rows of the page."""


@pytest.mark.parametrize("case", TITLES)
def test_the_page_of_schema_changes_says_which_targets_stop(case: str) -> None:
    (change,) = (one for one in applied_changes() if one.title == TITLES[case])
    tested = dict(zip(policies.TARGETS, TARGETS, strict=False))
    stopped = [kind for kind, variant in tested.items() if change.effect(variant.open()) == "blocked"]
    assert set(stopped) == set(policies.CASES[case].stopped)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schema_accepts_every_example(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), json_schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "blue"},
        {"name": "Sales Force!"},
        {"freshness": "10"},
        {"tables": []},
        {"source": {"type": "postgres", "connection": "c"}},
        {"source": {"type": "postgres", "connection": "c", "publication": "p", "publikation": "p"}},
        {"target": {"type": "delta", "location": "relative"}},
        {"resync": {"max_delete": 2}},
        {"version": 3},
        {"tables": [{"source": "a", "on_delete": "sofd"}]},
        {"tables": [{"source": "a", "where": [{"column": "c", "op": "like"}]}]},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_loader_refuses(wrong: dict[str, Any]) -> None:
    text = yaml.safe_dump(shop() | wrong).encode()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shop() | wrong, json_schema())
    with pytest.raises(Exception, match="DEF"):
        load_text(text, "shop.yaml")

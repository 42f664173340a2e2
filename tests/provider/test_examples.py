"""The example replicators: one for each type of source and format, complete and never scheduled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors import FORMATS, SOURCES
from airflow_cdc_provider.core.spec.dag_plan import plan
from airflow_cdc_provider.loader import load_file
from airflow_cdc_provider.loader.files import load_folder

DAGS = Path(__file__).parents[2] / "dags"
EXAMPLES = sorted((DAGS / "replicators" / "examples").iterdir())


def test_the_examples_load_as_one_folder_without_problems_and_warnings() -> None:
    folder = load_folder(DAGS / "replicators" / "examples")
    assert folder.problems == ()
    assert len(folder.loaded) == len(EXAMPLES)
    assert [entry.warnings for entry in folder.loaded.values()] == [()] * len(EXAMPLES)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_each_example_has_a_description_and_a_plan(file: Path) -> None:
    assert re.match(r"# .{40,}\n", file.read_text())
    definition = load_file(file).definition
    assert plan(definition).dag_id == definition.name


def test_every_source_and_every_format_has_an_example() -> None:
    sources = [load_file(file).definition.source for file in EXAMPLES]
    ours = {kind for kind, path in SOURCES.items() if path.startswith("airflow_cdc_provider.")}
    assert {source.type for source in sources} == ours
    assert {source.options["format"] for source in sources if "format" in source.options} == FORMATS.keys()


def test_the_examples_have_no_dag() -> None:
    scheduled = {file.stem for file in DAGS.rglob("*.py")}
    assert scheduled & {load_file(file).definition.name for file in EXAMPLES} == set()
    assert not list((DAGS / "replicators").rglob("*.py"))

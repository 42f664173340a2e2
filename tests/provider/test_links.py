"""No page and no link leads to a file: a browser would look for it on the computer of its user."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import airflow_cdc_provider
from airflow_cdc_provider.dag_doc import dag_doc
from airflow_cdc_provider.get_provider_info import get_provider_info
from tests.provider.step_harness import StepHarness, context

PAGE = Path(airflow_cdc_provider.__file__).parent / "ui/page"
HREF = re.compile(r"""href(?:=|: )(["'`])(.*?)\1""")


@pytest.mark.usefixtures("fake_spark", "own_cache", "connections")
def test_the_links_of_a_task_are_pages_of_a_server_or_empty(tmp_path: Path) -> None:
    harness = StepHarness(tmp_path)
    harness.plan("public.a", extract=True, sealed=4, lo={"slot": "0/1"}, limit={"slot": "0/9"})
    operator = harness.operator("extract")
    operator.execute(context("extract"))
    links = {}
    for path in get_provider_info()["extra-links"]:
        module, _, name = path.rpartition(".")
        links[name] = getattr(import_module(module), name)().get_link(operator, ti_key=context("extract")["ti"])
    assert links["SparkHistoryLink"] == ""
    assert re.match(r"(https?://[^/]+)?/dags/", links["ReplicatorLink"]), links


def test_the_description_of_a_dag_shows_folders_as_text(tmp_path: Path) -> None:
    text = dag_doc(StepHarness(tmp_path).definition, ())
    assert f"`{tmp_path}/lake`" in text and "file:" not in text


def test_the_page_links_only_to_itself_and_to_airflow() -> None:
    found = [href for file in PAGE.iterdir() for _, href in HREF.findall(file.read_text())]
    assert len(found) > 3
    assert [
        href for href in found if not href.startswith(("#/", "../assets?", "../dags/")) and href != "page.css"
    ] == []

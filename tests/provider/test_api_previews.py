"""What would happen, by the REST API: plans, assessments and drafts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.provider.api_client import ApiClient, add_dags, api_client
from tests.provider.command_line import YAML, CommandLine, replicated
from tests.provider.run_harness import RunHarness

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")

DRAFTS = "/replicators/shop/drafts"


@pytest.fixture
def api(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[ApiClient]:
    add_dags(["shop"])
    replicated(harness)
    client = api_client()
    with client.http:
        yield client


@pytest.fixture
def yaml(harness: RunHarness) -> str:
    return YAML.format(folder=harness.folder)


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith("state.db-")}


def test_a_plan_and_an_assessment_are_those_of_the_command_line(
    api: ApiClient, cdc: CommandLine, harness: RunHarness
) -> None:
    harness.source.change("public.a")
    plan = api.get("/replicators/shop/plan").json()
    assert plan == cdc("plan", "shop", "--json").body and "extract" in plan["next"]
    assessed = api.get("/replicators/shop/assessment").json()
    assert assessed == cdc("assess", "shop", "--json").body
    (table,) = api.get("/replicators/shop/assessment", params={"table": "public.a"}).json()["tables"]
    assert table["table"] == "public.a"


def test_a_draft_is_validated_and_planned_and_nothing_is_written(
    api: ApiClient, harness: RunHarness, yaml: str
) -> None:
    before = files(harness.folder)
    changed = yaml.replace("public.*", "public.a")
    answer = api.post(DRAFTS, {"yaml": changed, "plan": True})
    assert answer.status_code == 200, answer.text
    assert [rule["source"] for rule in answer.json()["definition"]["tables"]] == ["public.a"]
    assert [one["table"] for one in answer.json()["plan"]["tables"]] == ["public.a"]
    assert api.post(DRAFTS, {"yaml": changed}).json()["plan"] is None
    assert files(harness.folder) == before
    assert api.get("/replicators/shop").json()["definition"]["tables"][0]["source"] == "public.*"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("name: shop", "name: other", "API005"), ("tables:", "tabels:", "DEF"), ("tables:", "\t", "DEF")],
)
def test_a_draft_with_errors_names_them_with_their_lines(
    api: ApiClient, yaml: str, old: str, new: str, code: str
) -> None:
    answer = api.post(DRAFTS, {"yaml": yaml.replace(old, new)})
    found = answer.json()["problems"]
    assert answer.status_code == 422 and all(one["code"].startswith(code) for one in found)
    assert all(one["where"].startswith("draft.yaml") for one in found)


def test_a_plan_uses_no_connection_that_the_user_may_not_read(
    api: ApiClient, yaml: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SECRET_DB", os.environ["AIRFLOW_CONN_SHOP_DB"])
    draft = {"yaml": yaml.replace("shop_db", "secret_db"), "plan": True}
    assert api.post(DRAFTS, draft, role="viewer").status_code == 403
    refused = api.post(DRAFTS, draft, role="user")
    assert refused.status_code == 403 and "secret_db" in refused.json()["title"]
    assert api.post(DRAFTS, draft, role="op").status_code != 403
    assert api.post(DRAFTS, draft | {"plan": False}, role="user").status_code == 200

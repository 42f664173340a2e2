"""Questions in the API, and on the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from airflow_cdc_provider.core.table.questions import Answer
from tests.provider.api_client import ApiClient, add_dags, api_client
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.provider.shown_page import shown_page
from tests.provider.waiting_table import QUESTION, ask

pytestmark = [pytest.mark.server, pytest.mark.filterwarnings("ignore:Using `httpx` with")]

PATH = "/replicators/shop/questions"


@pytest.fixture
def asking(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> RunHarness:
    add_dags(["shop"])
    replicated(harness)
    ask(harness)
    harness.source.change("public.b")
    harness.run("r2")
    return harness


@pytest.fixture
def api(asking: RunHarness) -> Iterator[ApiClient]:
    client = api_client()
    with client.http:
        yield client


def test_an_open_question_has_its_statements_and_what_waits_for_it(api: ApiClient) -> None:
    (shown,) = api.get(PATH).json()["questions"]
    assert (shown["id"], shown["statements"]) == (QUESTION.id, list(QUESTION.statements))
    assert api.get(f"{PATH}/{QUESTION.id}/sample", "user").json() == {"records": 0, "values": []}
    assert api.get(f"{PATH}/{QUESTION.id}/sample", "viewer").status_code == 403
    missing = api.get(f"{PATH}/ffff/sample", "user")
    assert (missing.status_code, missing.json()["problems"][0]["code"]) == (404, "API004")


def test_a_resync_as_an_answer_needs_the_typed_name_and_leaves_its_reason(api: ApiClient, asking: RunHarness) -> None:
    path, body = f"{PATH}/{QUESTION.id}/answer", {"answer": "resync", "reason": "names are numbers now"}
    refused = api.post(path, body)
    assert refused.status_code == 409 and "confirm" in refused.json()["problems"][0]["do"]
    assert api.post(path, {**body, "confirm": "shop"}).status_code == 202
    (decision,) = asking.replicator.log.decisions()
    assert (decision.answer, decision.reason, decision.decided_by) == (Answer.RESYNC, body["reason"], "user-name")
    entries = api.get("/replicators/shop/audit", "user").json()["entries"]
    assert ("decide", "user-name") in {(one["action"], one["actor"]) for one in entries}


def test_an_answer_that_is_sent_again_starts_one_run(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(
        "airflow_cdc_provider.hooks.dag_runs.trigger_dag", lambda *_, **run: started.append(run["run_id"])
    )
    body = {"answer": "leave", "now": True}
    first, again = (api.post(f"{PATH}/{QUESTION.id}/answer", body, key="the-same-key") for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["started_run"] == again.json()["started_run"] and len(set(started)) == 1
    api.post(f"{PATH}/{QUESTION.id}/answer", body, key="another-key")
    assert len(set(started)) == 2


def test_a_resync_on_the_page_is_confirmed_with_the_typed_name(asking: RunHarness) -> None:
    with shown_page(asking) as shown:
        page = shown.page
        shown.open("#/shop")
        page.get_by_role("button", name="Resync", exact=True).click()
        page.get_by_role("dialog").get_by_role("textbox").fill("shop")
        page.get_by_role("dialog").get_by_role("button", name="Resync").click()
        expect(page.locator("#message")).to_have_class("done")
    (decision,) = asking.replicator.log.decisions()
    assert decision.answer is Answer.RESYNC


def test_an_answer_on_the_page_is_a_decision_by_the_user(asking: RunHarness) -> None:
    with shown_page(asking) as shown:
        page = shown.page
        shown.open("#/")
        expect(page.get_by_role("row", name="shop")).to_contain_text("1 question")
        shown.open("#/shop")
        expect(page.get_by_role("heading", name="Question about public.a")).to_be_visible()
        expect(page.get_by_text(QUESTION.statements[0])).to_be_visible()
        page.get_by_role("button", name="Values waiting for public.a").click()
        expect(page.get_by_role("dialog")).to_contain_text('"records": 0')
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Leave", exact=True).click()
        expect(page.locator("#message")).to_have_class("done")
    (decision,) = asking.replicator.log.decisions()
    assert (decision.question, decision.answer, decision.decided_by) == (QUESTION.id, Answer.LEAVE, "user-name")

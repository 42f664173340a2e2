"""The buttons of the page in a real Airflow, and what they do to the copies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser import browser_page, grave_faults
from tests.e2e.page_journey import row_of
from tests.scenario import Scenario
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

CUSTOMERS, VIEWS = "public.customers", "public.page_views"
TABLES = f"""\
tables:
  - source: {CUSTOMERS}
    on_bad_record: quarantine
  - source: {VIEWS}
    schema_changes: {{narrow: ask}}
"""


def test_an_operator_steers_a_replicator_from_the_page(scenario: Callable[..., Scenario]) -> None:
    one = scenario("steered", tables=TABLES)
    with browser_page(one.airflow.url, one.airflow.token) as page:
        page.goto(f"{one.airflow.url}/cdc/#/")
        expect(page.get_by_text("as of")).to_be_visible()
        one.must_tick()
        run_now(one, page)
        rewind(one, page)
        resync(one, page)
        compare(one, page)
        discard(one, page)
        answer(one, page)
        assert grave_faults(page) == []
    one.verify()


def run_now(one: Scenario, page: Page) -> None:
    one.execute("update customers set name = 'Ada' where id = 7")
    opened(one, page)
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#message")).to_contain_text("started")
    run_id = (page.locator("#message").text_content() or "").split()[1]
    assert one.finish(run_id)["run"] == "success"
    opened(one, page)
    expect(row_of(page, CUSTOMERS)).to_contain_text("replicating")
    expect(page.get_by_role("link", name=f"run {run_id}: success")).to_be_visible()


def rewind(one: Scenario, page: Page) -> None:
    """To before the last change; the next run applies it again."""
    window = one.cdc("status", one.name)["tables"][0]["window"]
    opened(one, page)
    page.get_by_role("button", name="Rewind all").click()
    confirm(page, one.name, "Rewind", to=str(window - 1))
    expect(page.get_by_role("table", name="Last commands")).to_contain_text("rewind")
    one.must_tick()
    one.must_tick()
    one.verify()


def resync(one: Scenario, page: Page) -> None:
    opened(one, page)
    page.get_by_role("button", name=f"Resync {CUSTOMERS}").click()
    confirm(page, one.name, "Resync")
    expect(page.get_by_role("table", name="Last commands")).to_contain_text("resync")
    one.must_tick()
    opened(one, page)
    expect(page.get_by_role("table", name="Last commands").get_by_role("row", name="resync")).to_contain_text("done")
    page.get_by_role("link", name=CUSTOMERS, exact=True).click()
    expect(page.get_by_role("heading", name="States")).to_be_visible()
    expect(page.locator("p .state.resyncing").first).to_be_visible()


def compare(one: Scenario, page: Page) -> None:
    opened(one, page)
    page.get_by_role("button", name=f"Verify {CUSTOMERS}").click()
    expect(page.locator("#message")).to_contain_text("Submitted")
    one.must_tick()
    opened(one, page)
    expect(row_of(page, CUSTOMERS)).to_contain_text("identical")


def discard(one: Scenario, page: Page) -> None:
    """A time that the copy cannot have is in quarantine until its record is discarded."""
    change = "update customers set name = 'Bea', updated_at = {} where id = 8"
    one.execute(change.format("'infinity'"))
    one.must_tick()
    page.goto(f"{one.airflow.url}/cdc/#/")
    page.reload()
    expect(page.get_by_role("row", name=one.name)).to_contain_text("1 record in quarantine")
    opened(one, page)
    record = page.get_by_role("table", name="Records in quarantine").get_by_role("row").nth(1)
    expect(record).to_contain_text("an infinite time")
    record.get_by_role("button", name="Discard").click()
    confirm(page, one.name, "Discard")
    expect(record).to_contain_text("discard")
    one.execute(change.format("now()"))
    one.must_tick()
    opened(one, page)
    expect(page.get_by_role("table", name="Records in quarantine")).to_be_hidden()
    one.verify()


def answer(one: Scenario, page: Page) -> None:
    """A narrowed column parks its table; the button ends the wait, and the next run carries the answer out."""
    one.execute("alter table page_views alter column milliseconds type smallint")

    def parked() -> bool:
        one.tick()
        return any(table["state"] == "blocked" for table in one.cdc("status", one.name, check=False)["tables"])

    until(parked, "the table to wait", every_s=0.5)
    page.goto(f"{one.airflow.url}/cdc/#/")
    page.reload()
    expect(page.get_by_role("row", name=one.name)).to_contain_text("1 question")
    opened(one, page)
    expect(page.get_by_role("heading", name=f"Question about {VIEWS}")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Resync", exact=True).first.click()
    confirm(page, one.name, "Resync")
    expect(page.locator("#message")).to_have_class("done")
    one.must_tick()
    opened(one, page)
    expect(row_of(page, VIEWS)).to_contain_text("replicating")


def opened(one: Scenario, page: Page) -> None:
    page.goto(f"{one.airflow.url}/cdc/#/{one.name}")
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("as of")


def confirm(page: Page, name: str, verb: str, to: str = "") -> None:
    dialog = page.get_by_role("dialog")
    if to:
        dialog.get_by_label("To window or time").fill(to)
    dialog.get_by_label(f"Type {name} to confirm").fill(name)
    dialog.get_by_role("button", name=verb).click()

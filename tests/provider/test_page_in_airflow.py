"""The page where Airflow shows it: in a sandboxed iframe, in a theme, on plain HTTP, with a copy that is late."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from airflow.utils.state import DagRunState
from playwright.sync_api import FrameLocator, expect

from tests.browser import grave_faults
from tests.provider.api_client import add_dags, set_runs
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.provider.shown_page import Shown, shown_page

pytestmark = pytest.mark.server

NOW = datetime.now(UTC)
SANDBOX = "allow-scripts allow-same-origin allow-forms allow-downloads"
"""Of Airflow 3.3: without navigation of the page around it."""
FRAME = f'<iframe sandbox="{SANDBOX}" width="1200" height="780" src="{{}}">'


@pytest.fixture
def shown(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[Shown]:
    add_dags(["shop"])
    set_runs("shop", [("r1", DagRunState.SUCCESS, NOW - timedelta(minutes=5), timedelta(seconds=20))])
    replicated(harness)
    with shown_page(harness) as page:
        yield page


def embedded(shown: Shown, place: str, theme: str = "") -> FrameLocator:
    body = f'<html class="{theme}"><body>{FRAME.format(f"/{place}")}</body></html>'
    shown.page.route("**/around", lambda route: route.fulfill(body=body, content_type="text/html"))
    shown.page.goto(f"{shown.url}/around")
    frame = shown.page.frame_locator("iframe")
    expect(frame.get_by_role("status")).to_contain_text("as of")
    return frame


@pytest.mark.parametrize(
    ("place", "link", "leads_to"),
    [
        ("#/shop", "run r1: success", "/dags/shop/runs/r1"),
        ("#/shop/public.a", "cdc/shop/public_a", "/assets?name_pattern="),
    ],
)
def test_links_leave_the_iframe_of_airflow(shown: Shown, place: str, link: str, leads_to: str) -> None:
    frame = embedded(shown, place)
    frame.get_by_role("link", name=link).click()
    expect(shown.page).to_have_url(re.compile(re.escape(leads_to)))


def test_links_work_without_an_iframe(shown: Shown) -> None:
    shown.open("#/shop")
    shown.page.get_by_role("link", name="run r1: success").click()
    expect(shown.page).to_have_url(re.compile("/dags/shop/runs/r1$"))


def test_the_page_has_the_theme_of_airflow_and_follows_it(shown: Shown) -> None:
    root = embedded(shown, "#/shop", theme="dark").locator("html")
    expect(root).to_have_class("dark")
    shown.page.evaluate("document.documentElement.className = ''")
    expect(root).not_to_have_class("dark")


def test_buttons_work_without_https(shown: Shown) -> None:
    """There browsers have no ``crypto.randomUUID``."""
    page = shown.page
    page.add_init_script("delete Crypto.prototype.randomUUID")
    shown.open("#/shop")
    page.get_by_role("button", name="Pause public.a").click()
    expect(page.get_by_role("row", name="pause public.a")).to_contain_text("done")


def test_a_late_copy_is_never_shown_as_good(shown: Shown) -> None:
    page, fresh_at = shown.page, (NOW - timedelta(days=3)).isoformat(timespec="milliseconds")
    shown.harness.state.change_tables("shop", lambda rows: [replace(rows["public.a"], fresh_at=fresh_at)])
    shown.open("#/")
    row = page.get_by_role("row", name="shop")
    expect(row).to_contain_text("3 d, late")
    assert row.locator(".fill-good").count() == 0 and row.locator(".fill-wait").count() == 1
    assert grave_faults(page) == []
    shown.open("#/shop")
    tables = page.get_by_role("table", name="Tables")
    expect(tables.get_by_role("row", name="public.a").locator(".state")).to_have_class("state replicating overdue")
    expect(tables.get_by_role("row", name="public.b").locator(".state")).to_have_class("state replicating")
    assert grave_faults(page) == []

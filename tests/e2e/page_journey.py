"""What an operator does on the page: look at the replicators, pause a table, and not resync one by mistake."""

from __future__ import annotations

from playwright.sync_api import FrameLocator, Locator, Page, expect

from tests.browser import browser_page, grave_faults, picture
from tests.scenario import Scenario

ORDERS, CUSTOMERS = "public.orders", "public.customers"


def walk(shop: Scenario) -> None:
    with browser_page(shop.airflow.url, shop.airflow.token) as page:
        in_airflow(shop, page)
        by_keyboard(shop, page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for place in ("", f"#/{shop.name}", f"#/{shop.name}/{ORDERS}"):
                page.goto(f"{shop.airflow.url}/cdc/{place}")
                page.reload()
                expect(page.get_by_role("status")).to_contain_text("as of")
                assert grave_faults(page) == []


def in_airflow(shop: Scenario, page: Page) -> None:
    page.goto(f"{shop.airflow.url}/plugin/replicators")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("4 replicating")).to_be_visible()
    picture(page, "replicators")
    frame.get_by_label("Only what needs attention").check()
    expect(frame.get_by_text("Nothing needs attention.")).to_be_visible()
    page.goto(f"{shop.airflow.url}/dags/{shop.name}/plugin/replicator")
    frame.get_by_role("button", name=f"Pause {ORDERS}").click()
    expect(state_of(frame, ORDERS)).to_have_text("paused")
    expect(state_of(frame, CUSTOMERS)).to_have_text("replicating")
    expect(frame.get_by_role("row", name=f"pause {ORDERS}")).to_contain_text("done")
    frame.get_by_role("status").scroll_into_view_if_needed()
    picture(page, "replicator")
    frame.get_by_role("button", name=f"Resume {ORDERS}").click()
    expect(state_of(frame, ORDERS)).to_have_text("replicating")


def by_keyboard(shop: Scenario, page: Page) -> None:
    """A resync needs the name; Escape leaves everything as it is."""
    page.goto(f"{shop.airflow.url}/cdc/#/{shop.name}")
    resync = page.get_by_role("button", name=f"Resync {CUSTOMERS}")
    resync.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Resync")
    expect(confirm).to_be_disabled()
    page.keyboard.type(shop.name)
    expect(confirm).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name=CUSTOMERS, exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Columns", exact=True)).to_be_visible()
    expect(page.get_by_text("resyncing")).to_be_hidden()


def state_of(frame: FrameLocator, table: str) -> Locator:
    return row_of(frame, table).locator(".state")


def row_of(page: Page | FrameLocator, table: str) -> Locator:
    rows = page.get_by_role("table", name="Tables").get_by_role("row")
    return rows.filter(has=page.get_by_role("link", name=table, exact=True))

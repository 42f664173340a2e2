"""The page in a browser, without an Airflow around it: what it shows of trouble, and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from tests.browser import grave_faults
from tests.provider.api_client import add_dags
from tests.provider.bad_records import with_bad_records
from tests.provider.command_line import CommandLine
from tests.provider.run_harness import RunHarness
from tests.provider.shown_page import Shown, shown_page

pytestmark = pytest.mark.server

HOSTILE = "<img src=x onerror=alert(1)>"


def in_trouble(harness: RunHarness) -> Callable[[Mapping[str, TableRow]], list[TableRow]]:
    """``public.a`` has bad records; ``public.b`` has stopped, with a text from the source in its reason."""
    return lambda before: [
        replace(before["public.a"], control=harness.control("public.a")),
        replace(
            before["public.b"],
            state=TableState.BLOCKED,
            reason=f"a column is {HOSTILE}",
            remedy="airflow cdc resync shop",
        ),
    ]


@pytest.fixture
def troubled(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> RunHarness:
    add_dags(["shop"])
    with_bad_records(harness)
    harness.state.change_tables("shop", in_trouble(harness))
    return harness


@pytest.fixture
def shown(troubled: RunHarness) -> Iterator[Shown]:
    with shown_page(troubled) as page:
        yield page


def test_trouble_is_shown_and_texts_of_the_source_are_only_texts(shown: Shown) -> None:
    page = shown.page
    shown.open("#/")
    expect(page.get_by_role("row", name="shop")).to_contain_text("1 blocked, 1 replicating")
    expect(page.get_by_role("row", name="shop")).to_contain_text("2 records in quarantine")
    page.get_by_label("Only what needs attention").check()
    expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
    page.get_by_role("link", name="shop", exact=True).click()
    expect(page.get_by_role("table", name="Tables")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0
    for place in ("#/", "#/shop", "#/shop/public.a"):
        shown.open(place)
        assert grave_faults(page) == []


def test_a_record_is_applied_again_at_once_and_discarded_only_with_the_typed_name(shown: Shown) -> None:
    page, log = shown.page, shown.harness.replicator.log
    shown.open("#/shop")
    records = page.get_by_role("table", name="Records in quarantine")
    page.get_by_role("button", name="Replay one").click()
    expect(records.get_by_role("row", name="one")).to_contain_text("replay")
    page.get_by_role("button", name="Discard two").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("shop")
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(records.get_by_role("row", name="two")).to_contain_text("discard")
    expect(page.get_by_role("table", name="Audit")).to_contain_text("quarantine discard")
    assert {one.record: (one.kind, one.decided_by) for one in log.decisions()} == {
        "one": ("replay", "user-name"),
        "two": ("discard", "user-name"),
    }


def test_a_record_is_applied_again_with_corrected_values(shown: Shown) -> None:
    page, log = shown.page, shown.harness.replicator.log
    shown.open("#/shop")
    values = page.get_by_role("dialog").get_by_label("Values by column")
    for text in ("{broken", '{"name": "good"}'):
        page.get_by_role("button", name="Correct one").click()
        values.fill(text)
        page.get_by_role("dialog").get_by_role("button", name="Correct").click()
        if text == "{broken":
            expect(page.locator("#message")).to_contain_text("The values are no JSON")
            assert list(log.decisions()) == []
    expect(page.get_by_role("table", name="Records in quarantine").get_by_role("row", name="one")).to_contain_text(
        "replay"
    )
    (decision,) = log.decisions()
    assert (decision.record, decision.kind, decision.values) == ("one", "replay", {"name": "good"})


def test_a_comparison_may_repair_and_a_resync_may_remove_more_rows(shown: Shown) -> None:
    page, state = shown.page, shown.harness.state
    shown.open("#/shop")
    page.get_by_role("button", name="Repair public.a").click()
    expect(page.get_by_role("table", name="Last commands").get_by_role("row", name="verify public.a")).to_be_visible()
    page.get_by_role("button", name="Resync public.b").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_label("Type shop to confirm").fill("shop")
    dialog.get_by_role("button", name="Resync").click()
    expect(page.get_by_role("table", name="Last commands").get_by_role("row", name="resync public.b")).to_be_visible()
    resync, verify = state.recent_commands("shop", 2)
    assert (verify.arguments["repair"], resync.arguments["approve_deletes"]) == (True, True)


def test_a_command_names_the_paused_table_that_it_waits_for(shown: Shown) -> None:
    shown.harness.request(CommandKind.PAUSE, "public.b")
    shown.harness.run("r9")
    shown.harness.request(CommandKind.RESYNC, "public.b")
    shown.open("#/shop")
    row = shown.page.get_by_role("table", name="Last commands").get_by_role("row", name="resync public.b")
    expect(row).to_contain_text("Waits until public.b is resumed")


def test_a_replicator_that_has_not_run_yet_is_shown(shown: Shown) -> None:
    add_dags(["later"], paused=True)
    shown.open("#/")
    expect(shown.page.get_by_text("later: its DAG is paused")).to_be_visible()
    expect(shown.page.get_by_role("link", name="later")).to_have_attribute("href", "../dags/later")


def test_errors_and_unknown_replicators_are_shown_as_text(shown: Shown) -> None:
    page = shown.page
    shown.open("#/nowhere")
    expect(page.get_by_role("alert").first).to_contain_text("no replicator nowhere has run")
    shown.open("#/shop")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#message")).to_be_visible()


def test_values_of_a_record_are_shown_one_at_a_time_and_each_request_is_audited(shown: Shown) -> None:
    page = shown.page
    shown.open("#/shop")
    page.get_by_role("button", name="Values one").click()
    dialog = page.get_by_role("dialog", name="Values one")
    expect(dialog).to_contain_text("Y2Fm6Q==")
    assert grave_faults(page) == []
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    shown.open("#/shop")
    expect(page.get_by_role("table", name="Audit")).to_contain_text("quarantine show")


def test_a_viewer_sees_the_tables_and_no_buttons(troubled: RunHarness) -> None:
    with shown_page(troubled, "viewer") as shown:
        for place in ("#/shop", "#/shop/public.a"):
            shown.open(place)
            expect(shown.page.get_by_text("replicating").first).to_be_visible()
            assert shown.page.get_by_role("main").get_by_role("button").count() == 0
        shown.open("#/shop")
        expect(shown.page.get_by_text("You may read this replicator")).to_be_visible()
        expect(shown.page.get_by_role("table", name="Records in quarantine")).to_contain_text("no date")

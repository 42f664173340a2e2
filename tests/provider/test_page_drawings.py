"""What the page draws: changes, runs, windows, states, copies in progress, and the log that the source keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from airflow.utils.state import DagRunState
from playwright.sync_api import Locator, expect

from airflow_cdc_provider.core.log.copy_progress import CopyProgress, Progress, progress_path
from airflow_cdc_provider.core.log.retained_log import EndSample, RetainedLog, SourceRetention
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.table.verified import Verified
from tests.browser import grave_faults, picture
from tests.provider.api_client import add_dags, set_runs
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness
from tests.provider.shown_page import Shown, shown_page

pytestmark = pytest.mark.server

NOW = datetime.now(UTC)
GIB = 1 << 30
COMPARED = Verified("2026-11-27T06:00:00.000+00:00", 2, False, differing=7, repaired=7)


def ago(**time: float) -> str:
    return (NOW - timedelta(**time)).isoformat(timespec="milliseconds")


def past_runs() -> list[tuple[str, DagRunState, datetime, timedelta]]:
    return [
        (
            f"r{number}",
            DagRunState.FAILED if number == 3 else DagRunState.SUCCESS,
            NOW - timedelta(minutes=5 * number),
            timedelta(seconds=20 + 15 * number),
        )
        for number in range(12)
    ]


def retention() -> SourceRetention:
    log = RetainedLog(bytes=3 * GIB, free_bytes=GIB, end=9 * GIB)
    return SourceRetention(ago(minutes=1), ago(minutes=1), log, (EndSample(ago(hours=1), 8 * GIB),))


@pytest.fixture
def shown(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[Shown]:
    add_dags(["shop"])
    set_runs("shop", past_runs())
    replicated(harness)
    harness.source.change("public.a", "public.a", "public.a")
    harness.run("r2")
    harness.state.positions.update("shop", retention=retention())
    rows = harness.state.tables("shop")
    recent = {ago(hours=hours)[:14] + ("00" if hours % 2 else "30"): 50 * hours for hours in range(1, 20)}
    harness.state.change_tables("shop", lambda _: [replace(rows["public.a"], recent=recent, verified=COMPARED)])
    copying = replace(rows["public.b"], state=TableState.RESYNCING, since=ago(), reason="asked by ada")
    harness.state.change_tables("shop", lambda _: [copying])
    progress = CopyProgress("r3", ago(seconds=3), 10.0, Progress(250_000, 1_000_000))
    harness.replicator.log.store.write(progress_path("public.b"), json.dumps(to_plain(progress)).encode())
    with shown_page(harness) as page:
        yield page


def drawing(shown: Shown, name: str) -> Locator:
    return shown.page.get_by_role("img", name=name)


def test_changes_runs_copies_and_the_end_of_the_log_are_drawn(shown: Shown) -> None:
    page = shown.page
    shown.open("#/")
    expect(drawing(shown, "9,500 changes in 24 hours")).to_be_visible()
    page.get_by_role("link", name="shop", exact=True).click()
    copies = page.get_by_role("table", name="Copies in progress")
    expect(copies).to_contain_text("250,000 rows, 25 %, 30 s left")
    expect(page.get_by_role("table", name="Tables")).to_contain_text("compared 2026-11-27T06:00 7 differ, 7 repaired")
    runs = page.get_by_role("link", name="run r3: failed")
    assert runs.get_attribute("href") == "../dags/shop/runs/r3"
    expect(page.get_by_text("11 success, 1 failed")).to_be_visible()
    expect(page.get_by_text("3.0 GiB kept for this replicator")).to_contain_text("Runs out")
    expect(drawing(shown, "75 % of what the source keeps is used")).to_be_visible()
    expect(page.get_by_role("table", name="Positions in the source")).to_contain_text("slot 103")
    assert page.locator("svg.bars rect").count() > 12
    page.get_by_text("Window by window").click()
    expect(page.get_by_role("table", name="Windows").get_by_role("row").nth(1)).to_contain_text("public.a 3")
    assert grave_faults(page) == []


def test_a_table_has_its_types_on_both_sides_its_states_and_its_costs(shown: Shown) -> None:
    page = shown.page
    shown.open("#/shop/public.b")
    columns = page.get_by_role("table", name="Columns")
    expect(columns.get_by_role("row", name="id")).to_contain_text("int64")
    expect(page.get_by_text("asked by ada").first).to_be_visible()
    expect(drawing(shown, "3 states since")).to_be_visible()
    expect(page.get_by_role("table", name="Costs by day")).to_contain_text("10")
    expect(page.get_by_role("link", name="cdc/shop/public_b")).to_be_visible()
    picture(page, "table")
    assert grave_faults(page) == []


def test_a_rewind_needs_the_name_and_a_window_and_is_refused_if_the_state_has_changed(shown: Shown) -> None:
    page = shown.page
    shown.open("#/shop")
    page.get_by_role("button", name="Rewind all").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Rewind")
    dialog.get_by_label("Type shop to confirm").fill("shop")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("To window or time").fill("1")
    shown.harness.state.change_tables(
        "shop", lambda rows: [replace(rows["public.a"], state=TableState.PAUSED, since=ago(seconds=1))]
    )
    confirm.click()
    expect(page.locator("#message")).to_contain_text("API007")
    assert shown.harness.state.pending("shop") == ()

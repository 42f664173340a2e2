"""What goes wrong at the two ends between runs: each ends in a clear message, and nothing is lost.

The tests build on each other; the comparison at the end judges them all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.scenario import Scenario

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture(scope="module")
def troubled(scenario: Callable[..., Scenario]) -> Scenario:
    made = scenario("troubled")
    made.must_tick()
    return made


def fails_with(scenario: Scenario, *words: str) -> None:
    """The next run fails, and the log of a failed task holds these words."""
    run = scenario.start()
    assert scenario.finish(run)["run"] == "failed"
    story = scenario.story(run)
    for word in words:
        assert word in story, story
    assert scenario.password not in story


def test_a_wrong_password_is_named_as_such_and_not_shown(troubled: Scenario) -> None:
    troubled.load.run(5)
    troubled.connect(password="not-the-password")
    fails_with(troubled, "CON009", "troubled_db")
    troubled.connect()


def test_an_unreachable_host_is_named(troubled: Scenario) -> None:
    troubled.connect(port=1)
    fails_with(troubled, "127.0.0.1", "CON")
    troubled.connect()


def test_a_missing_publication_comes_with_its_statement(troubled: Scenario) -> None:
    troubled.execute("alter publication cdc_troubled rename to mislaid")
    fails_with(troubled, "cdc_troubled", "CREATE PUBLICATION")
    troubled.execute("alter publication mislaid rename to cdc_troubled")


def test_a_revoked_grant_is_named_with_the_statement_that_cures_it(troubled: Scenario) -> None:
    troubled.execute("create role reader login replication password 'reader'")
    troubled.execute("grant select on all tables in schema public to reader")
    troubled.execute("revoke select on orders from reader")
    troubled.connect(login="reader", password="reader")
    checked = troubled.airflow.cli("cdc", "check", "troubled", check=False)
    assert checked.returncode == 78, checked.stdout + checked.stderr
    assert "GRANT SELECT ON" in checked.stdout + checked.stderr
    troubled.connect()


def test_a_dropped_slot_blocks_until_a_resync(troubled: Scenario) -> None:
    troubled.execute("select pg_drop_replication_slot('cdc_troubled')")
    troubled.load.run(5)
    fails_with(troubled, "cdc_troubled", "resync")
    troubled.cdc("resync", "troubled")
    troubled.must_tick()


def test_a_table_of_somebody_else_is_left_alone_and_its_siblings_go_on(
    troubled: Scenario, scenario: Callable[..., Scenario]
) -> None:
    other = scenario("neighbour", tables="tables:\n  - source: public.orders\n  - source: public.page_views\n")
    shutil.copytree(troubled.lake / "customers", other.lake / "orders")
    before = sorted(path.name for path in Path(other.lake, "orders", "_delta_log").iterdir())
    fails_with(other, "public.orders", "TGT001")
    assert sorted(path.name for path in Path(other.lake, "orders", "_delta_log").iterdir()) == before
    rows = {row["table"]: row["state"] for row in other.cdc("status", "neighbour")["tables"]}
    assert rows["public.page_views"] == "replicating"


def test_a_lost_state_store_is_made_anew_from_targets_and_staging(troubled: Scenario) -> None:
    troubled.cdc("pause", "troubled", "--table", "public.orders")
    for path in Path(troubled.airflow.home, "cdc").glob("state.db*"):
        path.unlink()
    troubled.cdc("state", "rebuild")
    rows = {row["table"]: row["state"] for row in troubled.cdc("status", "troubled")["tables"]}
    assert rows["public.orders"] == "paused"
    troubled.cdc("resume", "troubled", "--table", "public.orders")


def test_a_dropped_column_stays_in_the_copy_and_after_all_this_both_sides_are_identical(troubled: Scenario) -> None:
    troubled.execute("alter table orders drop column ship_on")
    troubled.load.run(5)
    troubled.must_tick()
    troubled.verify()
    assert "ship_on" in DeltaTable(troubled.lake / "orders").schema().to_arrow().names

"""Copies are compared by the schedule: runs, status, questions and check."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.cli import decide
from airflow_cdc_provider.control.answers import open_questions
from airflow_cdc_provider.control.questions import unanswered
from airflow_cdc_provider.control.reports import remove_old_reports
from airflow_cdc_provider.control.verification import verification_problems
from airflow_cdc_provider.core.log.change_log import report_folder
from airflow_cdc_provider.core.spec.verification import OnDifference, Verify
from airflow_cdc_provider.core.table.verified import Verified
from airflow_cdc_provider.core.times import utc_now
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import FileSource, RunHarness

DIFFERENT: dict[str, Any] = {
    "identical": False,
    "source_rows": 10,
    "target_rows": 10,
    "differing": 1,
    "differences": ["7"],
}


def scheduled(harness: RunHarness, repair: OnDifference = OnDifference.OFF) -> RunHarness:
    """Whose tables are due in each run."""
    replicated(harness)
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text() + f"verify: {{every: 1s, repair: {repair}}}\n")
    harness.definition = replace(harness.definition, verify=Verify(timedelta(microseconds=1), repair))
    return harness


def verified(harness: RunHarness, table: str = "public.a") -> Verified:
    found = harness.state.tables("shop")[table].verified
    assert found is not None
    return found


def test_a_due_comparison_starts_without_changes_and_stands_in_the_status(
    cdc: CommandLine, harness: RunHarness
) -> None:
    scheduled(harness)
    decision = harness.open("r2")
    assert (decision.follow, decision.plan.compare) == (("verify", "close_window"), ("public.a", "public.b"))
    harness.spark(decision)
    assert harness.close("r2").problems == ()
    assert verified(harness).identical
    assert [table["verified"]["identical"] for table in cdc("status", "shop", "--json").body["tables"]] == [True, True]
    assert f"{verified(harness).at[:16]} identical" in cdc("status", "shop", "--output", "plain").out


def test_a_difference_that_is_not_repaired_fails_the_run_that_finds_it(cdc: CommandLine, harness: RunHarness) -> None:
    scheduled(harness)
    harness.comparison = DIFFERENT
    problems = harness.run("r2").problems
    assert [(problem.code, problem.where) for problem in problems] == [("VER006", "public.a"), ("VER006", "public.b")]
    assert "1 differ" in cdc("status", "shop", "--output", "plain").out
    harness.definition = replace(harness.definition, verify=Verify(timedelta(days=1)))
    assert harness.run("r3").problems == ()


def test_an_operator_decides_about_the_repair(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "close_question", lambda *_: False)  # Airflow has no database here
    scheduled(harness, OnDifference.ASK)
    harness.comparison = DIFFERENT
    decision = harness.open("r2")
    assert decision.plan.repair_tables == ()
    harness.spark(decision)
    asked = {question.table: question for question in unanswered(harness.replicator, "r2")}
    assert harness.close("r2").problems == ()
    assert open_questions(harness.replicator) == asked
    harness.definition = replace(harness.definition, verify=Verify(timedelta(days=1), OnDifference.ASK))
    assert harness.open("r3").plan.compare == (), "nothing is due"
    assert {one.table: one for one in unanswered(harness.replicator, "r3")} == asked, "the run before may have died"

    listed = cdc("decide", "shop", "--json").body["questions"]
    assert [one["answers"] for one in listed] == [["repair", "leave"]] * 2
    assert cdc("decide", "shop", "--table", "public.a", "--answer", "repair").code == 0
    assert cdc("decide", "shop", "--table", "public.b", "--answer", "leave").code == 0
    assert unanswered(harness.replicator, "r2") == ()
    decision = harness.open("r4")
    assert (decision.plan.compare, decision.plan.repair_tables) == (("public.a",), ("public.a",))
    harness.comparison = {**DIFFERENT, "repaired": 1}
    harness.spark(decision)
    assert harness.close("r4").problems == ()
    assert verified(harness).cured and verified(harness).question is None
    assert harness.open("r5").plan.compare == (), "once"
    assert [one.table for one in open_questions(harness.replicator).values()] == ["public.b"]


def test_a_repair_without_an_operator_is_part_of_the_comparison(harness: RunHarness) -> None:
    scheduled(harness, OnDifference.ON)
    assert harness.open("r2").plan.repair_tables == ("public.a", "public.b")


def test_check_names_what_a_source_cannot_do(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(harness, OnDifference.ON)
    assert verification_problems(harness.definition, harness.source) == []  # type: ignore[arg-type]
    monkeypatch.setattr(FileSource, "exact_snapshot", False)
    (problem,) = verification_problems(harness.definition, harness.source)  # type: ignore[arg-type]
    assert (problem.code, problem.allowed) == ("VER005", "repair: off")
    assert "VER005" in cdc("check", "shop").err
    monkeypatch.setattr(FileSource, "contains_all_after", lambda *_: False, raising=False)
    (problem,) = verification_problems(harness.definition, harness.source)  # type: ignore[arg-type]
    assert problem.code == "VER004"
    assert harness.open("r2").plan.compare == ()


def test_the_last_report_is_listed_and_older_ones_are_removed(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert "no comparison of shop has found a difference" in cdc("differences", "shop").out
    for name, key in (("20200101T000000000000-x", "1"), ("20200102T000000000000-y", "7")):
        row = {"at": pa.scalar(0, pa.timestamp("us", "UTC")), "window": 3, "table": "public.a", "key": key}
        hashes = {"column": "v", "source_hash": "aa", "target_hash": None}
        path = f"{report_folder('public.a')}/{name}.parquet"
        with harness.replicator.log.store.open_output(path) as content:
            pq.write_table(pa.table({name: [value] for name, value in (row | hashes).items()}), content)
    (report,) = cdc("differences", "shop", "--json").body["reports"]
    assert (report["table"], report["window"]) == ("public.a", 3)
    assert report["lines"] == [{"key": "7", "column": "v", "source_hash": "aa", "target_hash": None}]
    assert "no row" in cdc("differences", "shop", "--table", "public.a").out
    assert "no row" not in cdc("differences", "shop", "--table", "public.b").out
    remove_old_reports(harness.replicator, utc_now())
    assert harness.replicator.log.store.names(report_folder("public.a")) == ["20200102T000000000000-y.parquet"]

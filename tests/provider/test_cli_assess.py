"""``airflow cdc tables|describe|assess`` on a source that is a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from airflow_cdc_provider.control import assessments
from airflow_cdc_provider.core.assessment.copy_rate import CopyRate
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult, TableResult, TableTask
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.core.table.state_rows import AttemptRow
from airflow_cdc_provider.core.table.table_size import TableSize
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import FileSource, RunHarness, schema

A = schema("public.a")
DATED = replace(A, columns=(*A.columns, Column("until", LogicalType(Kind.DATE), native="date")))
SOURCE = [to_plain(DATED), to_plain(schema("public.b", key=())), to_plain(schema("other.c"))]


@pytest.fixture
def shop(harness: RunHarness) -> RunHarness:
    harness.source.write(tables=SOURCE)
    return harness


def problem_of(table: str, **more: Any) -> Problem:
    return Problem("SRC009", f"{table} has no key", found="nothing", do="ALTER TABLE …", table=table, **more)


def report(monkeypatch: pytest.MonkeyPatch, *problems: Problem) -> None:
    def check(self: object, tables: Sequence[TableTask]) -> list[Problem]:
        return list(problems)

    monkeypatch.setattr(FileSource, "check", check)


def test_tables_lists_what_the_patterns_select_with_its_state(cdc: CommandLine, shop: RunHarness) -> None:
    body = cdc("tables", "shop", "--output", "json").body
    assert [(row["table"], row["state"], row["rule"]) for row in body["tables"]] == [
        ("public.a", "pending", "public.*"),
        ("public.b", "pending", "public.*"),
    ]
    assert body["tables"][0] | {"columns": 3, "key": ["id"], "target": "public_a"} == body["tables"][0]
    assert body["not_selected"] == ["other.c"]
    replicated(shop)
    assert [row["state"] for row in cdc("tables", "shop", "--json").body["tables"]] == ["replicating"] * 2
    assert "not selected: 1 tables of the source" in cdc("tables", "shop").out


def test_tables_reports_rules_that_select_nothing(cdc: CommandLine, shop: RunHarness) -> None:
    path = shop.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text().replace("- source: public.*", "- source: public.*\n  - source: public.absent"))
    result = cdc("tables", "shop", "--json")
    assert (result.code, [one["code"] for one in result.body["problems"]]) == (78, ["DEF041"])


def test_describe_shows_the_columns_of_both_sides(cdc: CommandLine, shop: RunHarness) -> None:
    path = shop.folder / "dags/replicators/shop.yaml"
    rule = "source: public.a\n    columns: {exclude: [name]}"
    path.write_text(path.read_text().replace("source: public.*", rule))
    body = cdc("describe", "shop", "public.a", "--json").body
    assert (body["selected"], body["target"], body["key"]) == (True, "public_a", ["id"])
    assert [(c["name"], c["type"], c["target_type"], c["key"], c["copied"]) for c in body["columns"]] == [
        ("id", "int64", "int64", True, True),
        ("name", "text", "", False, False),
        ("until", "date", "date", False, True),
    ]
    other = cdc("describe", "shop", "other.c")
    assert other.code == 0 and "other.c is not selected by shop" in other.out
    assert cdc("describe", "shop", "other.d").code == 66


def test_assess_shows_support_per_table_and_column(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(monkeypatch, problem_of("public.b"))
    shop.source.write(sizes={"public.a": {"rows": 1200, "bytes": 3 << 20}})
    result = cdc("assess", "shop", "--output", "json")
    a, b = result.body["tables"]
    assert (result.code, result.body["ready"]) == (78, False)
    assert (a["support"], a["columns_partially_supported"], a["rows"], a["bytes"]) == ("PARTIAL", 1, 1200, 3 << 20)
    assert (b["support"], [one["code"] for one in b["findings"]]) == ("NO", ["SRC009"])
    assert [(one["name"], one["support"]) for one in a["columns"]] == [
        ("id", "YES"), ("name", "YES"), ("until", "PARTIAL"),
    ]  # fmt: skip
    assert "infinite times" in a["columns"][2]["findings"][0]["reason"]
    assert a["copy_s"] is None, "no rate is known for this type of source"
    assert yaml.safe_load(cdc("assess", "shop", "-o", "yaml").out) == result.body
    text = " ".join(cdc("assess", "shop").out.split())
    assert "public.b: SRC009 public.b has no key: nothing do: ALTER TABLE …" in text
    plain = cdc("assess", "shop", "--output", "plain").out.splitlines()
    assert [line.split()[:2] for line in plain[1:]] == [["public.a", "PARTIAL"], ["public.b", "NO"]]


def test_assess_of_a_table_shows_its_columns(cdc: CommandLine, shop: RunHarness) -> None:
    result = cdc("assess", "shop", "--table", "public.a", "--output", "plain")
    assert result.code == 0, result.err
    assert [line.split()[:4] for line in result.out.splitlines()[1:]] == [
        ["public.a", "id", "int64", "int64"],
        ["public.a", "name", "text", "text"],
        ["public.a", "until", "date", "date"],
    ]
    assert [table["table"] for table in cdc("assess", "shop", "--table", "public.a", "--json").body["tables"]] == [
        "public.a"
    ]
    assert cdc("assess", "shop", "--table", "public.x").code == 66


def test_problems_of_the_whole_are_beside_the_tables(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(monkeypatch, Problem("SRC001", "wal_level is too low", do="ALTER SYSTEM …"))
    body = cdc("assess", "shop", "--json").body
    assert [one["code"] for one in body["findings"]] == ["SRC001"]
    assert [table["support"] for table in body["tables"]] == ["PARTIAL", "YES"]


def test_a_source_that_does_not_answer_is_a_finding(cdc: CommandLine, shop: RunHarness) -> None:
    shop.source.write(up=False)
    result = cdc("assess", "shop", "--json")
    assert (result.code, result.body["tables"]) == (78, [])
    assert [one["code"] for one in result.body["findings"]] == ["SRC001"]


def test_missing_statistics_do_not_stop_an_assessment(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: object, tables: Sequence[str]) -> dict[str, TableSize]:
        raise SourceUnavailable.of("SRC010", "a privilege is missing", found="VIEW DATABASE STATE denied")

    monkeypatch.setattr(FileSource, "sizes", denied)
    result = cdc("assess", "shop", "--json")
    assert (result.code, result.body["tables"][0]["rows"]) == (0, None)
    assert result.body["sizes_unknown"] == "a privilege is missing (VIEW DATABASE STATE denied)"


def test_before_the_first_copy_the_rate_of_the_source_type_determines_the_copy_time(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assessments, "DEFAULT_RATES", {"file": CopyRate(5_000, 1 << 20)})
    shop.source.write(sizes={"public.a": {"rows": 60_000}, "public.b": {"rows": 10, "bytes": 30 << 20}})
    body = cdc("assess", "shop", "--json").body
    assert ([table["copy_s"] for table in body["tables"]], body["rate"]["copies"]) == ([12.0, 30.0], 0)
    text = " ".join(cdc("assess", "shop").out.split())
    assert "5,000 rows or 1 MiB per second (a default, measured on a busy machine with two cores)" in text


def test_earlier_copies_of_the_replicator_determine_the_copy_time(cdc: CommandLine, shop: RunHarness) -> None:
    shop.source.write(sizes={"public.a": {"rows": 60_000}})
    folder = shop.replicator.run("r1").folder("snapshot", 1)
    copied = TableResult("public.b", Outcome.DONE, 40_000, phases={"copy": 2.0})
    folder.write_result(StepResult(StepKind.SNAPSHOT, "one", (copied,)))
    attempt = AttemptRow("one", "shop", "snapshot", "r1", "snapshot", 1, folder.path, ("public.b",), "2026-01-01")
    shop.state.open_attempt(attempt)
    assert cdc("assess", "shop", "--json").body["tables"][0]["copy_s"] is None, "it has not ended"
    shop.state.close_attempt("one", "done")
    body = cdc("assess", "shop", "--json").body
    assert (body["tables"][0]["copy_s"], body["rate"]["copies"]) == (3.0, 1)
    assert "20,000 rows per second (measured on 1 earlier copies)" in " ".join(cdc("assess", "shop").out.split())

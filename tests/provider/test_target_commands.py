"""Runs and ``airflow cdc …`` with several targets, of which one cannot be used, on a replicator without servers."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.control.drop_gone_copies import drop_gone_copies
from airflow_cdc_provider.control.observe import RunContext, observe
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.listed_tables import GoneTable
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.spec.verification import Verify
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.bad_records import put_aside
from tests.provider.command_line import CommandLine, replicated
from tests.provider.file_target import FileTarget
from tests.provider.run_harness import FileSource, RunHarness
from tests.provider.waiting_table import QUESTION, ask

COPIES = ["public.a", "public.a@wh", "public.b", "public.b@wh"]
IN_LAKE, IN_WAREHOUSE = [COPIES[0], COPIES[2]], [COPIES[1], COPIES[3]]
CONNECTION = "AIRFLOW_CONN_WH_DB"
RUNS = itertools.count(1)


@pytest.fixture
def shop(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> RunHarness:
    """Both tables in the lake and in ``wh``, whose connection exists."""
    monkeypatch.setenv(CONNECTION, '{"conn_type": "generic"}')
    return in_targets(harness, {"": "lake", "wh": "wh"})


def in_targets(harness: RunHarness, folders: dict[str, str]) -> RunHarness:
    """``folders``: by the name of the target."""
    path, lines, targets = harness.folder / "dags/replicators/shop.yaml", [], list[Target]()
    for name, folder in folders.items():
        location, connection = f"{harness.folder}/{folder}", "wh_db" if name == "wh" else ""
        more = [f"{key}: {value}" for key, value in (("name", name), ("connection", connection)) if value]
        lines.append("  - {" + ", ".join(["type: files", f"location: {location}", *more]) + "}")
        targets.append(Target("files", location, connection, name=name or "default"))
    text = path.read_text()
    before = next(line for line in text.splitlines() if line.startswith("target:"))
    path.write_text(text.replace(before, "\n".join(["targets:", *lines])))
    harness.definition = replace(harness.definition, target=None, targets=tuple(targets))
    return harness


def states(shop: RunHarness) -> dict[str, TableState]:
    return {copy: row.state for copy, row in shop.state.tables("shop").items()}


def windows(shop: RunHarness, copies: list[str]) -> set[int]:
    return {shop.control(copy).window for copy in copies}


def cut_window(shop: RunHarness, name: str) -> int:
    target = shop.replicator.targets.named(name)
    assert isinstance(target, FileTarget)
    return int(json.loads(target.store.read("_cuts.json"))["window"])


def change(shop: RunHarness) -> tuple[Problem, ...]:
    shop.source.change("public.a", "public.b")
    return shop.run(f"n{next(RUNS)}").problems


def test_a_connection_that_does_not_exist_stops_the_copies_of_its_target_alone(shop: RunHarness) -> None:
    replicated(shop)
    slot = shop.slot()
    shop.unusable = {"wh"}
    problems = change(shop)
    assert [(one.code, one.where) for one in problems] == [("RUN002", copy) for copy in IN_WAREHOUSE]
    assert all("CON001" in one.found or "no connection wh" in str(one) for one in problems)
    shop.unusable = set()
    assert (windows(shop, IN_LAKE), windows(shop, IN_WAREHOUSE)) == ({2}, {1})
    assert [cut_window(shop, name) for name in ("default", "wh")] == [2, 1], "each target has a cut of its own"
    assert states(shop) == dict.fromkeys(IN_LAKE, TableState.REPLICATING) | dict.fromkeys(
        IN_WAREHOUSE, TableState.FAILING
    )
    assert shop.slot() == slot, "the source keeps what the warehouse needs"
    assert change(shop) == ()
    assert windows(shop, COPIES) == {3} and set(states(shop).values()) == {TableState.REPLICATING}
    assert shop.slot() > slot


def test_first_copies_are_made_where_they_can(shop: RunHarness) -> None:
    shop.unusable = {"wh"}
    assert [one.where for one in shop.run("r1").problems] == IN_WAREHOUSE
    slot = shop.slot()
    assert change(shop) != () and windows(shop, IN_LAKE) == {2}
    assert shop.slot() == slot, "copies that may exist are not known"
    shop.unusable = set()
    assert shop.open("r3").plan.copy == tuple(IN_WAREHOUSE)


def test_copies_that_are_due_are_compared_in_every_target_that_answers(shop: RunHarness) -> None:
    replicated(shop)
    shop.definition = replace(shop.definition, verify=Verify(timedelta(microseconds=1)))
    assert shop.open("r2").plan.compare == tuple(COPIES)
    shop.close("r2")
    shop.unusable = {"wh"}
    decision = shop.open("r3")
    assert decision.plan.compare == tuple(IN_LAKE)
    shop.spark(decision)
    assert [one.where for one in shop.close("r3").problems] == IN_WAREHOUSE
    rows = shop.state.tables("shop")
    assert [bool(rows[copy].verified) for copy in COPIES] == [True, False, True, False]


def test_a_command_is_carried_out_where_it_can(shop: RunHarness) -> None:
    replicated(shop)
    shop.unusable = {"wh"}
    shop.request(CommandKind.PAUSE, "public.a")
    shop.request(CommandKind.PAUSE, "public.a@wh")
    shop.run("r2")
    assert (states(shop)["public.a"], states(shop)["public.a@wh"]) == (TableState.PAUSED, TableState.FAILING)
    assert [one.tables for one in shop.state.pending("shop")] == [("public.a@wh",)]
    shop.unusable = set()
    shop.run("r3")
    assert states(shop)["public.a@wh"] is TableState.PAUSED and shop.state.pending("shop") == ()


class DroppedTables(FileSource):
    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        return True


def test_the_copies_of_a_dropped_table_are_dropped_where_they_can(shop: RunHarness) -> None:
    replicated(shop)
    gone = (GoneTable(copy, "public_a", "public.*", OnDroppedTable.DROP) for copy in ("public.a@wh", "public.a"))
    shop.unusable = {"wh"}
    shop.source = DroppedTables(shop.source.path)
    facts = replace(observe(shop.replicator, RunContext("r2")).facts, gone=tuple(gone))
    drop_gone_copies(shop.replicator, facts, shop.log_lines.append)
    assert "public.a@wh is not dropped in this run: CON001" in "\n".join(shop.log_lines)
    shop.unusable = set()
    exist = [shop.replicator.targets.state(copy, "public_a").exists for copy in ("public.a@wh", "public.a")]
    assert exist == [True, False]


def test_check_and_assess_report_the_unusable_target_beside_the_others(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = cdc("check", "shop", "--json").body
    assert (ready["ready"], ready["tables"]) == (True, COPIES)
    assert [table["table"] for table in cdc("assess", "shop", "--json").body["tables"]] == COPIES
    monkeypatch.delenv(CONNECTION)
    checked = cdc("check", "shop", "--json")
    assert (checked.code, [one["code"] for one in checked.body["problems"]]) == (78, ["CON001"])
    assert checked.body["tables"] == COPIES
    assessed = cdc("assess", "shop", "--json")
    assert (assessed.code, [one["code"] for one in assessed.body["findings"]]) == (78, ["CON001"])
    assert [table["table"] for table in assessed.body["tables"]] == IN_LAKE


def test_check_reports_the_problems_of_every_target(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileTarget, "check", lambda self, tables: [Problem("TST001", f"{len(tables)}: {self.store}")])
    codes = [(one["code"], one["what"][:2]) for one in cdc("check", "shop", "--json").body["problems"]]
    assert codes == [("TST001", "2:"), ("TST001", "2:")]


def test_tables_describe_and_status_show_every_copy_also_without_its_target(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(shop)
    monkeypatch.delenv(CONNECTION)
    listed = cdc("tables", "shop", "--json").body["tables"]
    assert [(row["table"], row["target"], row["state"]) for row in listed] == [
        (copy, copy[:8].replace(".", "_"), "replicating") for copy in COPIES
    ]
    shown = cdc("status", "shop", "--json").body["tables"]
    assert [(row["table"], row["state"]) for row in shown] == [(copy, "replicating") for copy in COPIES]
    described = cdc("describe", "shop", "public.a", "--json").body
    assert (described["selected"], described["columns"][0]["target_type"]) == (True, "int64")
    refused = cdc("describe", "shop", "public.a@wh", "--json")
    assert (refused.code, [one["code"] for one in refused.body["problems"]]) == (78, ["CON001"])


def test_questions_and_records_of_one_target_are_listed_while_another_cannot_be_used(
    metadata_database: None, cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(shop)
    ask(shop)
    put_aside(shop, "one", window=2)
    change(shop)
    monkeypatch.delenv(CONNECTION)
    assert [one["id"] for one in cdc("decide", "shop", "--json").body["questions"]] == [QUESTION.id]
    assert [one["id"] for one in cdc("quarantine", "list", "shop", "--json").body["records"]] == ["one"]
    assert cdc("decide", "shop", "--answer", "leave", "--json").code == 0


def test_a_problem_of_a_source_table_concerns_all_its_copies_if_every_target_has_a_name(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_targets(harness, {"one": "lake", "two": "wh"})
    problem = Problem("SRC009", "public.a has no key", table="public.a")
    monkeypatch.setattr(FileSource, "check", lambda *_: [problem])
    assessed = cdc("assess", "shop", "--json").body["tables"]
    assert {table["table"]: table["support"] for table in assessed} == {
        "public.a@one": "NO",
        "public.a@two": "NO",
        "public.b@one": "YES",
        "public.b@two": "YES",
    }
    path = harness.folder / "dags/replicators/shop.yaml"
    path.write_text(path.read_text().replace("public.*", "public.b"))
    assessed = cdc("assess", "shop", "--json").body["tables"]
    assert [(table["table"], table["target"]) for table in assessed if table["support"] == "NO"] == [
        ("public.a", "public_a")
    ]


def test_a_moved_log_continues_the_copies_of_every_target(
    cdc: CommandLine, shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: [])
    replicated(shop)
    new, fences = f"{shop.folder}/new", {copy: shop.control(copy).fence for copy in COPIES}
    monkeypatch.delenv(CONNECTION)
    refused = cdc("move", "shop", "--staging", new)
    assert refused.code == 78 and "CON001" in refused.err, "all targets must answer"
    monkeypatch.setenv(CONNECTION, '{"conn_type": "generic"}')
    assert cdc("move", "shop", "--staging", new).code == 0
    assert {copy: shop.control(copy).fence for copy in COPIES} == {copy: fence + 1 for copy, fence in fences.items()}
    shop.definition = replace(shop.definition, staging=replace(shop.definition.staging, location=new))
    assert change(shop) == () and windows(shop, COPIES) == {2}


def test_a_command_about_a_target_that_left_the_yaml_ends(shop: RunHarness) -> None:
    assert shop.run(f"r{next(RUNS)}").problems == ()
    requests = [shop.request(CommandKind.RESYNC, "public.a@wh"), shop.request(CommandKind.VERIFY, "public.b@wh")]
    both, shop.definition = shop.definition, replace(shop.definition, targets=shop.definition.targets[:1])
    assert shop.run(f"r{next(RUNS)}").problems == ()
    ended = [shop.state.command(one.id) for one in requests]
    assert [one.outcome for one in ended if one] == [
        "not carried out: the YAML no longer selects public.a@wh",
        "not carried out: the YAML no longer selects public.b@wh",
    ]
    shop.definition = both
    assert shop.open(f"r{next(RUNS)}").plan.reconcile == ()


@pytest.mark.parametrize("targets", [{"": "lake", "wh": "wh"}, {"wh": "wh"}])
def test_an_error_of_a_table_in_the_yaml_leaves_all_its_copies_as_they_are(
    harness: RunHarness, monkeypatch: pytest.MonkeyPatch, targets: dict[str, str]
) -> None:
    monkeypatch.setenv(CONNECTION, '{"conn_type": "generic"}')
    shop = in_targets(harness, targets)
    assert shop.run(f"r{next(RUNS)}").problems == ()
    before, request = states(shop), shop.request(CommandKind.RESYNC)
    right = shop.definition
    shop.definition = replace(right, tables=(TableRule("public.a", key=("nothing",)), TableRule("public.b")))
    assert [one.code for one in shop.run(f"r{next(RUNS)}").problems] == ["DEF042"]
    assert states(shop) == before
    command = shop.state.command(request.id)
    assert command is not None and not command.finished and command.ended == {}
    shop.definition = right
    assert shop.run(f"r{next(RUNS)}").problems == ()
    command = shop.state.command(request.id)
    assert command is not None and command.outcome == f"copied again: {', '.join(sorted(before))}"


def test_patterns_that_match_too_many_tables_leave_all_copies_as_they_are(
    shop: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.run(f"r{next(RUNS)}").problems == ()
    before = states(shop)
    monkeypatch.setattr("airflow_cdc_provider.core.spec.selection.MAX_TABLES", 1)
    assert [one.code for one in shop.run(f"r{next(RUNS)}").problems] == ["DEF024"]
    assert states(shop) == before

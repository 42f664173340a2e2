"""``airflow cdc …`` through the parser of Airflow."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
import yaml
from airflow.cli.cli_config import GroupCommand

from airflow_cdc_provider import connectors
from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness


def test_a_valid_file_is_valid(cdc: CommandLine, harness: RunHarness) -> None:
    path = harness.folder / "dags/replicators/shop.yaml"
    result = cdc("validate", str(path))
    assert (result.code, result.out.strip()) == (0, f"{path}: valid, replicator shop")


def test_all_errors_of_all_files_are_shown(cdc: CommandLine, harness: RunHarness, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("nme: shop\nname: shop\nname: shop\n")
    result = cdc("validate", str(broken), str(tmp_path / "absent.yaml"), str(tmp_path), "--json")
    assert result.code == 78
    files = {problem["where"].split(":")[0] for problem in result.body["problems"]}
    assert files == {str(broken), str(tmp_path / "absent.yaml"), str(tmp_path)}
    assert len([p for p in result.body["problems"] if p["where"].startswith(str(broken))]) > 1


def test_a_target_table_that_another_replicator_writes_is_found_by_validate_and_check(
    cdc: CommandLine, harness: RunHarness
) -> None:
    folder = harness.folder / "dags/replicators"
    one, other = folder / "shop.yaml", folder / "mall.yaml"
    other.write_text(one.read_text().replace("name: shop", "name: mall"))
    for command in ("validate", "check"):
        result = cdc(command, str(one), "--json")
        assert (result.code, [problem["code"] for problem in result.body["problems"]]) == (78, ["DEF015"])
        assert "mall.yaml" in result.body["problems"][0]["found"]
    assert [problem["code"] for problem in cdc("check", "mall", "--json").body["problems"]] == ["DEF015"]
    other.unlink()
    assert cdc("validate", str(one)).code == 0


def test_a_file_that_is_not_there_is_missing_input(cdc: CommandLine, tmp_path: Path) -> None:
    result = cdc("validate", str(tmp_path / "absent.yaml"))
    assert result.code == 66
    assert "CLI005" in result.err and "path of a file" in result.err and result.out == ""


def test_an_unknown_option_gets_usage_on_stderr_and_the_nearest_name(cdc: CommandLine) -> None:
    result = cdc("status", "--jsn")
    assert (result.code, result.out) == (64, "")
    assert "did you mean '--json'?" in result.err and "usage" in result.err.lower()


def test_a_missing_argument_gets_usage_on_stderr(cdc: CommandLine) -> None:
    result = cdc("pause", "--table", "public.a")
    assert (result.code, result.out) == (64, "")
    assert "NAME" in result.err


def test_an_unknown_replicator_names_the_known_and_the_nearest(cdc: CommandLine, harness: RunHarness) -> None:
    result = cdc("status", "shpo")
    assert result.code == 66
    assert "CLI001" in result.err and "allowed: shop" in result.err and "did you mean 'shop'?" in result.err


@pytest.mark.parametrize("table", ["public.aa", "a;drop table x", "\x1b[31m", "x" * 5000])
def test_an_unknown_table_is_refused_before_anything_is_written(
    cdc: CommandLine, harness: RunHarness, table: str
) -> None:
    replicated(harness)
    result = cdc("pause", "shop", "--table", table, "--json")
    assert result.code == 66
    assert result.body["problems"][0]["allowed"] == "public.a, public.b"
    assert len(result.out) < 1000 and "\x1b" not in result.out
    assert harness.state.pending("shop") == ()


def test_a_broken_file_of_the_replicator_is_shown_with_its_errors(cdc: CommandLine, harness: RunHarness) -> None:
    (harness.folder / "dags/replicators/shop.yaml").write_text("name: shop\ntables: 7\n")
    result = cdc("plan", "shop")
    assert result.code == 78
    assert "shop.yaml:2:" in result.err


def test_every_answer_comes_in_airflow_s_own_formats(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    whole = cdc("plan", "shop", "--json").body
    assert whole["tables"]
    assert cdc("plan", "shop", "--output", "json").body == whole
    assert cdc("plan", "shop", "-o", "json").body == whole
    assert yaml.safe_load(cdc("plan", "shop", "--output", "yaml").out) == whole
    table = cdc("plan", "shop", "--output", "table")
    assert table.out == cdc("plan", "shop").out and "==" in table.out
    assert cdc("status", "shop", "--output", "xml").code == 64


def test_plain_output_is_rows_alone(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    cdc("resync", "shop", "--table", "public.b")
    result = cdc("status", "shop", "--output", "plain")
    head, *rows = result.out.splitlines()
    assert head.split()[:3] == ["replicator", "table", "state"]
    assert [row.split()[:3] for row in rows] == [["shop", f"public.{name}", "replicating"] for name in "ab"]
    assert "command resync of shop: pending" in result.err


def test_every_command_takes_output() -> None:
    (group,) = get_cli_commands()
    left = [group]
    while left:
        one = left.pop()
        if isinstance(one, GroupCommand):
            left += one.subcommands
            continue
        flags = {flag for argument in one.args for flag in argument.flags}
        assert {"-o", "--output", "--json"} <= flags, one.name


def test_plan_shows_what_the_next_run_does_per_table_and_does_nothing(cdc: CommandLine, harness: RunHarness) -> None:
    first = cdc("plan", "shop", "--json")
    assert [(t["table"], t["action"]) for t in first.body["tables"]] == [("public.a", "copy"), ("public.b", "copy")]
    assert harness.source.read()["slot"] is None
    replicated(harness)
    harness.source.change("public.a")
    body = cdc("plan", "shop", "--json").body
    assert body["next"] == ["extract", "close_window"]
    assert harness.state.holder("shop", "stream") is None
    assert not (harness.folder / "staging/shop/steps/plan").exists()


def test_a_missing_connection_is_named(cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SHOP_DB")
    result = cdc("plan", "shop", "--json")
    assert result.code == 78
    assert result.body["problems"][0]["code"] == "CON001"


def test_a_pause_is_in_the_target_when_the_command_returns(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    result = cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance", "--json")
    assert (result.code, result.body["status"], result.body["outcome"]) == (0, "done", "pause: public.a")
    state = harness.control("public.a").state
    assert (state.name, state.reason) == (TableState.PAUSED, "maintenance")
    assert cdc("status", "shop", "--json").body["tables"][0]["state"] == "paused"
    assert cdc("resume", "shop").code == 0
    assert harness.control("public.a").state.name is TableState.REPLICATING


def test_a_repeated_key_is_one_request(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    first = cdc("pause", "shop", "--key", "k1", "--json").body
    fence = harness.control("public.a").fence
    assert cdc("pause", "shop", "--key", "k1", "--json").body == first
    assert harness.control("public.a").fence == fence
    refused = cdc("resume", "shop", "--key", "k1", "--json")
    assert (refused.code, refused.body["problems"][0]["code"]) == (64, "CMD002")


def test_a_pause_waits_for_the_next_run_where_the_target_does_not_answer(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    (harness.folder / "lake/public_a/locked").write_text("")
    result = cdc("pause", "shop", "--table", "public.a", "--json")
    assert (result.code, result.body["status"]) == (0, "pending")
    (harness.folder / "lake/public_a/locked").unlink()
    harness.run("r2")
    assert harness.control("public.a").state.name is TableState.PAUSED


def test_a_table_is_rewound_when_the_command_returns(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change("public.a")
    harness.run("r2")
    assert harness.control("public.a").window == 2
    for typed in ((), ("--yes", "shpo")):
        unconfirmed = cdc("rewind", "shop", "--table", "public.a", "--to", "1", *typed)
        assert unconfirmed.code == 64 and "CMD032" in unconfirmed.err and harness.control("public.a").window == 2
    result = cdc("rewind", "shop", "--table", "public.a", "--to", "1", "--yes", "shop", "--json")
    assert (result.code, result.body["status"], result.body["outcome"]) == (0, "done", "rewind: public.a")
    assert harness.control("public.a").window == 1
    assert harness.open("r3").plan.reasons == {"public.a": "windows 2 to 2 are not applied yet"}
    refused = cdc("rewind", "shop", "--table", "public.a", "--to", "noon", "--yes", "shop", "--json")
    assert (refused.code, refused.body["tables"][0]["problem"]["code"]) == (65, "CMD008")
    assert cdc("rewind", "shop").code == 64, "--to is required"


def test_a_refused_resume_has_a_reason(cdc: CommandLine, harness: RunHarness) -> None:
    harness.open("r1")
    result = cdc("resume", "shop", "--table", "public.a", "--json")
    assert result.code == 65
    assert "has no copy yet" in result.body["outcome"]


def test_a_resync_waits_for_a_run(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert "CMD032" in cdc("resync", "shop", "--table", "public.b", "--yes", "b").err
    result = cdc("resync", "shop", "--table", "public.b", "--yes", "shop", "--json")
    assert (result.code, result.body["status"]) == (0, "pending")
    assert harness.open("r2").plan.reconcile == ("public.b",)
    (decision,) = harness.replicator.log.decisions()
    assert decision.command == result.body["id"] and decision.id.endswith(decision.command)


def test_a_state_store_that_cannot_be_reached_is_temporary(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = '{"conn_type": "postgres", "host": "127.0.0.1", "port": 9, "login": "u", "password": "geheim-geheim"}'
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", uri)
    result = cdc("status", "shop", "--json")
    assert (result.code, result.body["problems"][0]["code"]) == (75, "STA010")
    assert "geheim" not in result.out + result.err


def test_a_bug_has_another_exit_code_than_a_wrong_input(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connectors.SOURCES, "file", "tests.provider.run_harness:LakeOptions")
    result = cdc("plan", "shop", "--json")
    assert (result.code, result.body["problems"][0]["code"]) == (70, "CLI011")
    assert "Traceback" in result.err


def test_a_permission_error_has_an_exit_code_of_its_own(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(self: object, *arguments: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/lake")

    monkeypatch.setattr("tests.provider.run_harness.LoggedFileTarget.state", forbidden)
    result = cdc("plan", "shop")
    assert result.code == 77
    assert "CLI006" in result.err and "/data/lake" in result.err


def test_ctrl_c_ends_a_command_and_names_the_command_that_shows_the_request(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airflow_cdc_provider.cli.runs.time.sleep", interrupted)
    result = cdc("resync", "shop", "--wait")
    assert result.code == 130
    assert "status" in result.err
    (row,) = [one for one in cdc("status", "shop", "--json").body["requests"] if one["kind"] == "resync"]
    assert row["status"] == "pending"


def test_a_lost_index_is_rebuilt(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    cdc("pause", "shop", "--table", "public.b")
    (harness.folder / "cdc/state.db").unlink()
    result = cdc("state", "rebuild", "shop", "--json")
    assert result.code == 0
    assert {t["table"]: t["state"] for t in result.body["tables"]} == {"public.a": "replicating", "public.b": "paused"}
    assert [t["state"] for t in cdc("status", "shop", "--json").body["tables"]] == ["replicating", "paused"]


def test_a_rebuild_reports_the_copies_that_it_could_not_read(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    (harness.folder / "cdc/state.db").unlink()
    locked = harness.folder / "lake/public_a/locked"
    locked.touch()
    result = cdc("state", "rebuild", "shop", "--json")
    assert (result.code, [one["code"] for one in result.body["problems"]]) == (75, ["TGT010"])
    assert [one["table"] for one in result.body["tables"]] == ["public.b"]
    locked.unlink()
    assert cdc("state", "rebuild", "shop").code == 0


def test_a_closed_stdout_ends_quietly(cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        result = cdc("status", "shop", "--json")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("columns", ["20", "300"])
def test_narrow_terminals_plain_encodings_and_no_colour_work(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    replicated(harness)
    harness.state.change_tables("shop", lambda _: [])
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cdc("status", "shop").code == 0
    sys.stdout.flush()
    text = raw.getvalue().decode("ascii")
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= int(columns)

"""``airflow cdc …`` as an operator types it, through Airflow's own parser."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from airflow.cli.cli_config import GroupCommand

from airflow_cdc_provider import connectors
from airflow_cdc_provider.cli import check
from airflow_cdc_provider.cli.commands import get_cli_commands
from airflow_cdc_provider.core.connections.tls import not_verified
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.small_world import FileSource, World, schema
from tests.provider.typed import Said, replicated


def test_a_valid_file_is_valid(cdc: Callable[..., Said], world: World) -> None:
    path = world.folder / "dags/replicators/shop.yaml"
    said = cdc("validate", str(path))
    assert (said.code, said.out.strip()) == (0, f"{path}: valid, replicator shop")


def test_all_errors_of_all_files_are_shown_at_once(cdc: Callable[..., Said], world: World, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("nme: shop\nname: shop\nname: shop\n")
    said = cdc("validate", str(broken), str(tmp_path / "absent.yaml"), str(tmp_path), "--json")
    assert said.code == 78
    places = {problem["where"].split(":")[0] for problem in said.body["problems"]}
    assert places == {str(broken), str(tmp_path / "absent.yaml"), str(tmp_path)}
    assert len([p for p in said.body["problems"] if p["where"].startswith(str(broken))]) > 1


def test_a_target_table_that_another_replicator_writes_is_found_by_validate_and_check(
    cdc: Callable[..., Said], world: World
) -> None:
    folder = world.folder / "dags/replicators"
    one, other = folder / "shop.yaml", folder / "mall.yaml"
    other.write_text(one.read_text().replace("name: shop", "name: mall"))
    for command in ("validate", "check"):
        said = cdc(command, str(one), "--json")
        assert (said.code, [problem["code"] for problem in said.body["problems"]]) == (78, ["DEF015"])
        assert "mall.yaml" in said.body["problems"][0]["found"]
    assert [problem["code"] for problem in cdc("check", "mall", "--json").body["problems"]] == ["DEF015"]
    other.unlink()
    assert cdc("validate", str(one)).code == 0


def test_a_file_that_is_not_there_is_missing_input(cdc: Callable[..., Said], tmp_path: Path) -> None:
    said = cdc("validate", str(tmp_path / "absent.yaml"))
    assert said.code == 66
    assert "CLI005" in said.err and said.out == ""


def test_an_unknown_option_gets_usage_on_stderr_and_the_nearest_name(cdc: Callable[..., Said]) -> None:
    said = cdc("status", "--jsn")
    assert (said.code, said.out) == (64, "")
    assert "did you mean '--json'?" in said.err and "usage" in said.err.lower()


def test_a_missing_argument_gets_usage_on_stderr(cdc: Callable[..., Said]) -> None:
    said = cdc("pause", "--table", "public.a")
    assert (said.code, said.out) == (64, "")
    assert "NAME" in said.err


def test_an_unknown_replicator_names_the_known_and_the_nearest(cdc: Callable[..., Said], world: World) -> None:
    said = cdc("status", "shpo")
    assert said.code == 66
    assert "CLI001" in said.err and "allowed: shop" in said.err and "did you mean 'shop'?" in said.err


@pytest.mark.parametrize("table", ["public.aa", "a;drop table x", "\x1b[31m", "x" * 5000])
def test_an_unknown_table_is_refused_before_anything_is_written(
    cdc: Callable[..., Said], world: World, table: str
) -> None:
    replicated(world)
    said = cdc("pause", "shop", "--table", table, "--json")
    assert said.code == 66
    assert said.body["problems"][0]["allowed"] == "public.a, public.b"
    assert len(said.out) < 1000 and "\x1b" not in said.out
    assert world.state.pending("shop") == ()


def test_a_broken_file_of_the_replicator_is_shown_with_its_errors(cdc: Callable[..., Said], world: World) -> None:
    (world.folder / "dags/replicators/shop.yaml").write_text("name: shop\ntables: 7\n")
    said = cdc("plan", "shop")
    assert said.code == 78
    assert "shop.yaml:2:" in said.err


def test_every_answer_comes_in_airflow_s_own_formats(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    whole = cdc("plan", "shop", "--json").body
    assert whole["tables"]
    assert cdc("plan", "shop", "--output", "json").body == whole
    assert cdc("plan", "shop", "-o", "json").body == whole
    assert yaml.safe_load(cdc("plan", "shop", "--output", "yaml").out) == whole
    table = cdc("plan", "shop", "--output", "table")
    assert table.out == cdc("plan", "shop").out and "==" in table.out
    assert cdc("status", "shop", "--output", "xml").code == 64


def test_plain_output_is_rows_alone(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    cdc("resync", "shop", "--table", "public.b")
    said = cdc("status", "shop", "--output", "plain")
    head, *rows = said.out.splitlines()
    assert head.split()[:3] == ["replicator", "table", "state"]
    assert [row.split()[:3] for row in rows] == [["shop", f"public.{name}", "replicating"] for name in "ab"]
    assert "command resync of shop: pending" in said.err


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


def test_plan_says_per_table_what_the_next_run_does_and_does_nothing(cdc: Callable[..., Said], world: World) -> None:
    first = cdc("plan", "shop", "--json")
    assert [(t["table"], t["action"]) for t in first.body["tables"]] == [("public.a", "copy"), ("public.b", "copy")]
    assert world.source.read()["slot"] is None
    replicated(world)
    world.source.change("public.a")
    body = cdc("plan", "shop", "--json").body
    assert body["next"] == ["extract", "close_window"]
    assert world.state.holder("shop", "stream") is None
    assert not (world.folder / "staging/shop/steps/plan").exists()


def test_check_finds_a_ready_replicator_ready(cdc: Callable[..., Said], world: World) -> None:
    said = cdc("check", "shop")
    assert said.code == 0 and said.out.splitlines() == [
        "note: shop cannot detect what is not in its file",
        "shop is ready: 2 tables",
    ]
    assert cdc("check", "shop", "--json").body["undetected_changes"] == "what is not in its file"


def test_check_says_which_columns_may_hold_what_the_copy_cannot(cdc: Callable[..., Said], world: World) -> None:
    table = schema("public.a")
    dated = replace(table, columns=(*table.columns, Column("until", LogicalType(Kind.DATE))))
    world.source.write(tables=[to_plain(dated), to_plain(schema("public.b"))])
    said = cdc("check", "shop")
    (told,) = cdc("check", "shop", "--json").body["unsupported_values"]
    assert "infinite times in until" in told and "`on_unrepresentable: set_null`" in told
    assert said.code == 0 and f"note: {told}" in " ".join(said.out.split())


def test_check_says_where_the_source_has_not_room_for_all_copies_at_once(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileSource, "copies_at_once", lambda _: 1, raising=False)
    assert "2 tables, copied 1 at a time" in cdc("check", "shop").out


def test_check_shows_every_obstacle_at_once(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.source.write(up=False)
    (world.folder / "staging").write_text("a file where the folder should be")
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark"}')
    said = cdc("check", "shop", "--json")
    assert said.code == 78
    assert sorted(problem["code"] for problem in said.body["problems"]) == ["CON003", "SRC001", "STG010"]


def test_check_says_each_problem_once(cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(self: object, tables: object = ()) -> list[Problem]:
        raise SourceUnavailable(Problem("SRC001", "the source does not answer", found=f"attempt {uuid4()}"))

    monkeypatch.setattr("tests.provider.small_world.FileSource.tables", down)
    monkeypatch.setattr("tests.provider.small_world.FileSource.check", down)
    said = cdc("check", "shop", "--json")
    assert [problem["code"] for problem in said.body["problems"]] == ["SRC001"]


def test_check_says_aloud_what_is_not_verified_and_is_ready_all_the_same(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "warning" not in cdc("check", "shop").out, "asked first: a protocol remembers a class that has it once"
    warning = not_verified("shop_db", "tls_verify: false", "leave it out")
    monkeypatch.setattr(FileSource, "tls_warnings", lambda self: [warning], raising=False)
    said = cdc("check", "shop")
    assert said.code == 0
    assert "warning: CON041 TLS is not verified" in said.out and "shop_db" in said.out
    body = cdc("check", "shop", "--json").body
    assert (body["ready"], [one["code"] for one in body["warnings"]]) == (True, ["CON041"])
    monkeypatch.setattr(
        check, "state_tls_warnings", lambda: [not_verified("cdc_state", "tls_verify: false", "leave it out")]
    )
    assert "extra of connection cdc_state" in cdc("check", "shop").out


def test_check_refuses_folders_that_executors_elsewhere_cannot_reach(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "spark://cluster", "port": 7077}')
    said = cdc("check", "shop", "--json")
    found = [(problem["code"], problem["where"].split()[0]) for problem in said.body["problems"]]
    assert found == [("ENV005", "staging.location"), ("ENV005", "target.location")]


def test_a_missing_connection_is_named(cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SHOP_DB")
    said = cdc("plan", "shop", "--json")
    assert said.code == 78
    assert said.body["problems"][0]["code"] == "CON001"


def test_a_pause_is_in_the_target_when_the_command_returns(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    said = cdc("pause", "shop", "--table", "public.a", "--reason", "maintenance", "--json")
    assert (said.code, said.body["status"], said.body["outcome"]) == (0, "done", "pause: public.a")
    state = world.control("public.a").state
    assert (state.name, state.reason) == (TableState.PAUSED, "maintenance")
    assert cdc("status", "shop", "--json").body["tables"][0]["state"] == "paused"
    assert cdc("resume", "shop").code == 0
    assert world.control("public.a").state.name is TableState.REPLICATING


def test_the_same_key_is_one_request(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    first = cdc("pause", "shop", "--key", "k1", "--json").body
    fence = world.control("public.a").fence
    assert cdc("pause", "shop", "--key", "k1", "--json").body == first
    assert world.control("public.a").fence == fence
    refused = cdc("resume", "shop", "--key", "k1", "--json")
    assert (refused.code, refused.body["problems"][0]["code"]) == (64, "CMD002")


def test_a_pause_waits_for_the_next_run_where_the_target_does_not_answer(
    cdc: Callable[..., Said], world: World
) -> None:
    replicated(world)
    (world.folder / "lake/public_a/locked").write_text("")
    said = cdc("pause", "shop", "--table", "public.a", "--json")
    assert (said.code, said.body["status"]) == (0, "pending")
    (world.folder / "lake/public_a/locked").unlink()
    world.run("r2")
    assert world.control("public.a").state.name is TableState.PAUSED


def test_a_rewound_table_stands_back_when_the_command_returns(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    world.source.change("public.a")
    world.run("r2")
    assert world.control("public.a").window == 2
    said = cdc("rewind", "shop", "--table", "public.a", "--to", "1", "--json")
    assert (said.code, said.body["status"], said.body["outcome"]) == (0, "done", "rewind: public.a")
    assert world.control("public.a").window == 1
    assert world.open("r3").plan.reasons == {"public.a": "windows 2 to 2 are not applied yet"}
    refused = cdc("rewind", "shop", "--table", "public.a", "--to", "noon", "--json")
    assert (refused.code, refused.body["tables"][0]["problem"]["code"]) == (65, "CMD008")
    assert cdc("rewind", "shop").code == 64, "--to is wanted"


def test_what_cannot_be_paused_says_why(cdc: Callable[..., Said], world: World) -> None:
    world.open("r1")
    said = cdc("pause", "shop", "--table", "public.a", "--json")
    assert said.code == 65
    assert "has no copy yet" in said.body["outcome"]


def test_a_resync_waits_for_a_run(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    said = cdc("resync", "shop", "--table", "public.b", "--yes", "--json")
    assert (said.code, said.body["status"]) == (0, "pending")
    assert world.open("r2").plan.reconcile == ("public.b",)
    (decision,) = world.replicator.log.store.names("decisions")
    assert said.body["id"] in decision


def test_a_state_store_that_cannot_be_reached_is_temporary(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = '{"conn_type": "postgres", "host": "127.0.0.1", "port": 9, "login": "u", "password": "geheim-geheim"}'
    monkeypatch.setenv("AIRFLOW_CONN_CDC_STATE", uri)
    said = cdc("status", "shop", "--json")
    assert (said.code, said.body["problems"][0]["code"]) == (75, "STA010")
    assert "geheim" not in said.out + said.err


def test_a_bug_is_told_from_a_mistake_by_its_exit_code(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connectors.SOURCES, "file", "tests.provider.small_world:LakeOptions")
    said = cdc("plan", "shop", "--json")
    assert (said.code, said.body["problems"][0]["code"]) == (70, "CLI011")
    assert "Traceback" in said.err


def test_what_the_system_forbids_has_an_exit_code_of_its_own(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(self: object, *arguments: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/lake")

    monkeypatch.setattr("tests.provider.small_world.LakeOfFiles.state", forbidden)
    said = cdc("plan", "shop")
    assert said.code == 77
    assert "CLI006" in said.err and "/data/lake" in said.err


def test_ctrl_c_ends_a_command_and_says_what_becomes_of_the_request(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airflow_cdc_provider.cli.runs.time.sleep", interrupted)
    said = cdc("resync", "shop", "--wait")
    assert said.code == 130
    assert "status" in said.err
    (row,) = [one for one in cdc("status", "shop", "--json").body["requests"] if one["kind"] == "resync"]
    assert row["status"] == "pending"


def test_a_lost_index_is_made_again(cdc: Callable[..., Said], world: World) -> None:
    replicated(world)
    cdc("pause", "shop", "--table", "public.b")
    (world.folder / "cdc/state.db").unlink()
    said = cdc("state", "rebuild", "shop", "--json")
    assert said.code == 0
    assert {t["table"]: t["state"] for t in said.body["tables"]} == {"public.a": "replicating", "public.b": "paused"}
    assert [t["state"] for t in cdc("status", "shop", "--json").body["tables"]] == ["replicating", "paused"]


def test_a_closed_stdout_ends_quietly(cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        said = cdc("status", "shop", "--json")
    assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize("columns", ["20", "300"])
def test_narrow_terminals_plain_encodings_and_no_colour_work(
    cdc: Callable[..., Said], world: World, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    replicated(world)
    world.state.change_tables("shop", lambda _: [])
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cdc("status", "shop").code == 0
    sys.stdout.flush()
    text = raw.getvalue().decode("ascii")
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= int(columns)

"""``airflow cdc rename`` and ``move``, on a replicator without servers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.control import move_staging, rename_replicator
from airflow_cdc_provider.core.errors import Blocked, StagingUnavailable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.staging import transfer
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.target import TargetState
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import LoggedFileTarget, RunHarness, schema
from tests.provider.test_delete import Killed, killed_at, overtaken_at, yaml_of

RENAMING = (
    "rename.begun",
    "rename.stream",
    "transfer.file",
    "rename.copied",
    "rename.table",
    "rename.rows",
    "rename.removed",
    "rename.audited",
)
MOVING = ("move.begun", "transfer.file", "move.copied", "move.switched", "move.removed")


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    running: list[str] = []
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: list(running))
    return running


def renamed(harness: RunHarness) -> None:
    """As the operator edits the YAML."""
    path = yaml_of(harness)
    path.write_text(path.read_text().replace("name: shop", "name: mall"))
    harness.definition = replace(harness.definition, name="mall")


def goes_on(harness: RunHarness, name: str, window: int = 2) -> None:
    """A change is applied, and no table is copied again."""
    harness.source.change("public.a")
    decision = harness.open(f"next {window}")
    assert decision.plan.copy == () and decision.stop is None
    harness.spark(decision)
    assert harness.close(f"next {window}").problems == ()
    assert harness.control("public.a").replicator == name
    assert harness.control("public.a").window == window


def test_a_renamed_replicator_continues_without_a_copy(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    result = cdc("rename", "shop", "mall", "--json")
    assert (result.code, result.body) == (0, {"from": "shop", "to": "mall"})
    assert "name: mall" in cdc("status", "shop").out
    with pytest.raises(Blocked, match="CMD021 the replicator shop was renamed to mall"):
        harness.open("r2")
    assert not (harness.folder / "staging/shop").exists()
    renamed(harness)
    goes_on(harness, "mall")
    assert [row.table for row in harness.state.tables("mall").values()] == ["public.a", "public.b"]
    assert harness.state.tables("shop") == {}
    fences = [entry for entry in harness.state.audit("shop", 9) if entry.action == "fence"]
    assert len(fences) == 2, "an old driver cannot commit under the old name"
    assert "renamed" not in cdc("status").out


def test_the_remedies_of_a_renamed_replicator_are_its_own(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    harness.source.write(tables=[to_plain(schema(table)) for table in ("public.a", "public.b", "public.c")])
    harness.open("r2")
    assert cdc("pause", "shop", "--table", "public.a", "--table", "public.c").code == 0
    harness.close("r2")
    assert cdc("rename", "shop", "mall").code == 0
    tables = {one["table"]: one for one in cdc("status", "mall", "--json").body["tables"]}
    for table in ("public.a", "public.c"):
        assert tables[table]["state"] == "paused"
        assert tables[table]["remedy"] == f"airflow cdc resume mall --table {table}"
    renamed(harness)
    assert harness.control("public.a").state.remedy == "airflow cdc resume mall --table public.a"
    harness.open("r3")
    assert harness.state.tables("mall")["public.c"].remedy == "airflow cdc resume mall --table public.c"


def test_a_name_under_which_a_command_was_given_is_free(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    former = harness.definition
    renamed(harness)
    assert cdc("pause", "mall", "--key", "k").code == 0, "it finds no tables"
    yaml_of(harness).write_text(yaml_of(harness).read_text().replace("name: mall", "name: shop"))
    harness.definition = former
    assert cdc("pause", "shop", "--table", "public.b", "--key", "k").code == 0
    assert cdc("rename", "shop", "mall").code == 0
    renamed(harness)
    goes_on(harness, "mall")


@pytest.mark.parametrize("name", RENAMING)
def test_a_renaming_that_dies_is_finished_by_its_repetition(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    replicated(harness)
    with monkeypatch.context() as patch:
        for module in (rename_replicator, transfer):
            patch.setattr(module, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("rename", "shop", "mall")
    for one in ("shop", "mall"):
        harness.definition = replace(harness.definition, name=one)
        with pytest.raises(Blocked, match="CMD022"):
            harness.open("r2")
    assert "CMD024" in cdc("delete", "shop", "--yes", "shop").err
    assert cdc("rename", "shop", "mall").code == 0
    renamed(harness)
    goes_on(harness, "mall")
    assert not (harness.folder / "staging/shop").exists()


@pytest.mark.parametrize("name", RENAMING)
def test_a_renaming_that_stood_still_does_nothing_more(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def finish_and_run() -> None:
        assert cdc("rename", "shop", "mall").code == 0
        renamed(harness)
        goes_on(harness, "mall")

    replicated(harness)
    with monkeypatch.context() as patch:
        for module in (rename_replicator, transfer):
            patch.setattr(module, "failpoint", overtaken_at(name, finish_and_run))
        late = cdc("rename", "shop", "mall")
    assert late.code == 75 and "CMD034" in late.err
    goes_on(harness, "mall", window=3)
    entry = harness.state.replicators.get("shop")
    assert entry is not None and entry.gone


def test_a_name_in_use_or_of_another_form_is_refused(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert "CMD029" in cdc("rename", "shop", "shop").err
    assert "CMD033" in cdc("rename", "shop", "Shop 2").err
    (harness.folder / "staging/mall").mkdir()
    (harness.folder / "staging/mall/LOG").touch()
    assert "CMD027" in cdc("rename", "shop", "mall").err
    goes_on(harness, "shop")


def test_neither_is_begun_while_a_run_is_active(cdc: CommandLine, harness: RunHarness, tasks: list[str]) -> None:
    replicated(harness)
    move = ("move", "shop", "--staging", f"{harness.folder}/new")
    for command in (("rename", "shop", "mall"), move):
        assert harness.state.acquire("shop", Lane.STREAM, "r2", LEASE_S)
        result = cdc(*command)
        assert result.code == 75 and "run r2, which holds the stream lane" in result.err
        harness.state.release("shop", Lane.STREAM, "r2")
        tasks.append("merge of r2")
        assert "merge of r2" in cdc(*command).err
        tasks.clear()
    goes_on(harness, "shop")


def test_neither_is_begun_while_a_target_does_not_answer(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    store = harness.replicator.targets.only.store  # type: ignore[attr-defined]
    store.write("public_b/locked", b"")
    for command in (("rename", "shop", "mall"), ("move", "shop", "--staging", f"{harness.folder}/new")):
        assert cdc(*command).code != 0
    store.delete("public_b/locked")
    goes_on(harness, "shop")


def test_a_moved_log_continues_without_a_copy(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    new, fence = f"{harness.folder}/new", harness.control("public.a").fence
    assert cdc("move", "shop", "--staging", new).code == 0
    assert harness.control("public.a").fence == fence + 1, "an old driver cannot commit from the old folder"
    with pytest.raises(Blocked, match="CMD023 the staging of shop was moved") as refused:
        harness.open("r2")
    assert f"staging.location: {new}" in str(refused.value)
    assert not (harness.folder / "staging/shop").exists()
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, location=new))
    goes_on(harness, "shop")


@pytest.mark.parametrize("name", MOVING)
def test_a_move_that_dies_is_finished_by_its_repetition(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    replicated(harness)
    new = f"{harness.folder}/new"
    with monkeypatch.context() as patch:
        for module in (move_staging, transfer):
            patch.setattr(module, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("move", "shop", "--staging", new)
    with pytest.raises(Blocked, match="CMD022"):
        harness.open("r2")
    assert "CMD024" in cdc("move", "shop", "--staging", f"{new}2").err
    assert cdc("move", "shop", "--staging", new).code == 0
    harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, location=new))
    goes_on(harness, "shop")
    assert not (harness.folder / "staging/shop").exists()


@pytest.mark.parametrize("name", MOVING)
def test_a_move_that_stood_still_does_nothing_more(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    new = f"{harness.folder}/new"

    def finish_and_run() -> None:
        assert cdc("move", "shop", "--staging", new).code == 0
        harness.definition = replace(harness.definition, staging=replace(harness.definition.staging, location=new))
        goes_on(harness, "shop")

    replicated(harness)
    with monkeypatch.context() as patch:
        for module in (move_staging, transfer):
            patch.setattr(module, "failpoint", overtaken_at(name, finish_and_run))
        late = cdc("move", "shop", "--staging", new)
    assert late.code == 75 and "CMD034" in late.err
    goes_on(harness, "shop", window=3)


@pytest.mark.parametrize("command", [("move", "shop", "--staging", "{folder}/new"), ("rename", "shop", "mall")])
def test_of_two_processes_that_repeat_a_change_the_later_one_finishes_it(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The first one ends its part while the second is on the way to begin the copy again."""
    command = tuple(part.format(folder=harness.folder) for part in command)
    replicated(harness)
    with monkeypatch.context() as patch:
        patch.setattr(transfer, "failpoint", killed_at("transfer.file"))
        with pytest.raises(Killed):
            cdc(*command)
    module = move_staging if command[0] == "move" else rename_replicator
    finished = []
    with monkeypatch.context() as patch:
        at = "move.begun" if command[0] == "move" else "rename.stream"
        patch.setattr(module, "failpoint", overtaken_at(at, lambda: finished.append(cdc(*command).code)))
        late = cdc(*command)
    assert (finished, late.code) == ([0], 75)
    if command[0] == "move":
        staging = replace(harness.definition.staging, location=f"{harness.folder}/new")
        harness.definition = replace(harness.definition, staging=staging)
    else:
        renamed(harness)
    goes_on(harness, harness.definition.name)


def test_a_folder_without_a_log_replaces_no_log(tmp_path: Path) -> None:
    empty, log = LocalStore(f"{tmp_path}/empty"), LocalStore(f"{tmp_path}/log")
    log.write("LOG", b"1")
    with pytest.raises(StagingUnavailable, match="STG012"):
        transfer.copy_files(empty, log, lambda: None)
    assert log.read("LOG") == b"1"


def test_a_folder_in_use_or_inside_the_old_one_is_refused(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    staging = harness.folder / "staging"
    for location in (staging, f"{staging}/shop", f"{staging}/shop/new"):
        assert "CMD028" in cdc("move", "shop", "--staging", str(location)).err
    (harness.folder / "new/shop").mkdir(parents=True)
    (harness.folder / "new/shop/LOG").touch()
    assert "CMD027" in cdc("move", "shop", "--staging", f"{harness.folder}/new").err
    assert "CMD033" in cdc("move", "shop", "--staging", "new").err
    goes_on(harness, "shop")


def test_a_folder_that_the_yaml_may_not_have_is_refused(cdc: CommandLine, harness: RunHarness) -> None:
    """Otherwise no file of the replicator could be loaded afterwards."""
    replicated(harness)
    inside = cdc("move", "shop", "--staging", f"{harness.folder}/lake/public_a")
    assert inside.code and "CMD035" in inside.err and f"{harness.folder}/lake/public_a" in inside.err
    goes_on(harness, "shop")
    cdc("move", "shop", "--staging", str(harness.folder))
    path = yaml_of(harness)
    path.write_text(path.read_text().replace(f"{harness.folder}/staging", str(harness.folder)))
    around = cdc("rename", "shop", "lake")
    assert around.code and "CMD035" in around.err


def test_a_table_that_is_not_known_as_a_copy_refuses_a_rename(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the copy in a target that had another name: no command could give it the new one later."""
    replicated(harness)
    state = LoggedFileTarget.state

    def unknown(target: LoggedFileTarget, table: str, target_table: str) -> TargetState:
        return replace(state(target, table, target_table), control=None)

    with monkeypatch.context() as without_records:
        without_records.setattr(LoggedFileTarget, "state", unknown)
        refused = cdc("rename", "shop", "mall")
    assert refused.code and "CMD036" in refused.err and "public_a" in refused.err
    goes_on(harness, "shop")

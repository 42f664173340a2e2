"""``airflow cdc delete`` and ``recreate``, on a replicator without servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.cli import leaving
from airflow_cdc_provider.control import delete_replicator, replicator_changes
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import Blocked, SourceUnavailable
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import FileSource, RunHarness

FAILPOINTS = (
    "delete.begun",
    "delete.fenced",
    "delete.stream",
    "delete.source",
    "delete.dropped",
    "delete.released",
    "delete.staging",
    "delete.audited",
)


class Killed(BaseException):
    """Ends the process in a test."""


def killed_at(name: str, nth: int = 1) -> Callable[[str], None]:
    passages = []

    def failpoint(passed: str) -> None:
        if passed == name:
            passages.append(passed)
            if len(passages) == nth:
                raise Killed

    return failpoint


def overtaken_at(name: str, by: Callable[[], object]) -> Callable[[str], None]:
    """The process stops at its first passage, and goes on after ``by``."""
    passages = []

    def failpoint(passed: str) -> None:
        if passed == name and not passages:
            passages.append(passed)
            by()

    return failpoint


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that Airflow runs."""
    running: list[str] = []
    monkeypatch.setattr(leaving, "running_tasks", lambda dag_id: list(running))
    return running


def yaml_of(harness: RunHarness) -> Path:
    return harness.folder / "dags/replicators/shop.yaml"


def test_a_deletion_removes_everything_but_the_copies(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    result = cdc("delete", "shop", "--yes", "shop", "--json")
    assert (result.code, result.body["deleted"]) == (0, True)
    assert harness.source.read()["slot"] is None
    assert not (harness.folder / "staging/shop").exists()
    assert (harness.state.tables("shop"), harness.state.pending("shop")) == ({}, ())
    assert [harness.state.holder("shop", lane) for lane in Lane] == [None, None]
    assert sorted(path.name for path in (harness.folder / "lake").iterdir()) == ["public_a", "public_b"]
    assert harness.control("public.a").state.reason == "the replicator was deleted"
    assert harness.state.audit("shop", 1)[0].action == "delete"
    again = cdc("delete", "shop", "--yes", "shop")
    assert again.code == 0 and "nothing to do" in again.out


def test_a_deletion_drops_the_copies_if_asked(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    assert cdc("delete", "shop", "--drop-copies", "--yes", "shop").code == 0
    assert list((harness.folder / "lake").iterdir()) == []


def test_a_dry_run_shows_what_would_go_and_removes_nothing(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    body = cdc("delete", "shop", "--drop-copies", "--dry-run", "--json").body
    assert [(copy["target"], copy["rows"], copy["dropped"]) for copy in body["copies"]] == [
        ("public_a", 10, True),
        ("public_b", 10, True),
    ]
    assert body["files"] > 3 and body["bytes"] > 100
    assert "in staging" in cdc("delete", "shop", "--dry-run").out
    assert harness.run("r2").problems == ()
    assert harness.source.read()["slot"] is not None


@pytest.mark.parametrize("name", [(), ("--yes", "shpo"), ("--yes", "")])
def test_only_the_name_confirms_a_deletion(cdc: CommandLine, harness: RunHarness, name: tuple[str, ...]) -> None:
    replicated(harness)
    result = cdc("delete", "shop", *name)
    assert result.code == 64
    assert "CMD032" in result.err
    assert harness.run("r2").problems == ()


def test_no_run_of_a_deleted_replicator_starts_until_it_is_recreated(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    cdc("delete", "shop", "--drop-copies", "--yes", "shop")
    with pytest.raises(Blocked, match="CMD020 the replicator shop was deleted") as refused:
        harness.open("r2")
    assert "airflow cdc recreate shop" in str(refused.value)
    assert not (harness.folder / "staging/shop").exists() and harness.source.read()["slot"] is None
    for command in ("plan", "pause", "resync"):
        assert "CMD020" in cdc(command, "shop").err
    assert "airflow cdc recreate shop" in cdc("status", "shop").out
    assert cdc("recreate", "shop").code == 0
    assert harness.run("r3").problems == ()
    assert harness.control("public.a").window == 1
    assert "CMD030" in cdc("recreate", "shop").err


def test_a_replicator_without_yaml_is_listed_and_deleted(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    yaml_of(harness).unlink()
    body = cdc("status", "--json").body
    assert (body["without_yaml"], len(body["tables"])) == (["shop"], 2)
    assert "airflow cdc delete shop" in cdc("status", "shop").out
    assert cdc("delete", "shop", "--yes", "shop").code == 0
    assert harness.source.read()["slot"] is None
    assert cdc("status", "--json").body["without_yaml"] == []


@pytest.mark.parametrize(
    ("name", "yaml"),
    [*((name, "present") for name in FAILPOINTS), ("delete.fenced", "gone"), ("delete.staging", "gone")],
)
def test_a_deletion_that_dies_is_finished_by_its_repetition(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str, yaml: str
) -> None:
    replicated(harness)
    with monkeypatch.context() as patch:
        patch.setattr(delete_replicator, "failpoint", killed_at(name))
        with pytest.raises(Killed):
            cdc("delete", "shop", "--drop-copies", "--yes", "shop")
    if yaml == "gone":
        yaml_of(harness).unlink()
    with pytest.raises(Blocked, match="CMD022 a delete of the replicator shop has begun"):
        harness.open("r2")
    assert "airflow cdc delete shop --drop-copies" in cdc("status", "shop").out
    assert cdc("delete", "shop", "--yes", "shop").code == 0, "it drops the copies, as it was asked first"
    assert harness.source.read()["slot"] is None
    assert list((harness.folder / "lake").iterdir()) == []
    assert not (harness.folder / "staging/shop").exists()
    entry = harness.state.replicators.get("shop")
    assert entry is not None and entry.gone


@pytest.mark.parametrize("name", FAILPOINTS)
def test_a_deletion_that_stood_still_removes_nothing_of_what_has_begun_again(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def finish_and_begin_again() -> None:
        assert cdc("delete", "shop", "--yes", "shop").code == 0
        assert cdc("recreate", "shop").code == 0
        assert harness.run("r2").problems == ()

    replicated(harness)
    with monkeypatch.context() as patch:
        patch.setattr(delete_replicator, "failpoint", overtaken_at(name, finish_and_begin_again))
        late = cdc("delete", "shop", "--drop-copies", "--yes", "shop")
    assert late.code == 75 and "CMD034" in late.err
    assert harness.source.read()["slot"] is not None
    harness.source.change("public.a")
    assert harness.run("r3").problems == ()
    assert harness.control("public.a").window == 2
    assert len(harness.state.tables("shop")) == 2


def test_running_steps_lose_their_lease_and_tasks_are_waited_for(
    cdc: CommandLine, harness: RunHarness, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated(harness)
    assert harness.state.acquire("shop", Lane.COPY, "r2", LEASE_S)
    tasks.append("snapshot of r2")
    monkeypatch.setattr(replicator_changes, "WAIT_S", 0.0)
    result = cdc("delete", "shop", "--yes", "shop")
    assert result.code == 75
    assert "CMD025" in result.err and "snapshot of r2" in result.err
    assert not harness.state.renew("shop", Lane.COPY, "r2", LEASE_S), "the step stops"
    assert harness.source.read()["slot"] is not None
    tasks.clear()
    assert cdc("delete", "shop", "--yes", "shop").code == 0


def test_a_source_that_does_not_answer_delays_only_its_own_part(
    cdc: CommandLine, harness: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: FileSource) -> None:
        raise SourceUnavailable.of("SRC001", "the source does not answer")

    replicated(harness)
    with monkeypatch.context() as patch:
        patch.setattr(FileSource, "drop_stream", silent)
        result = cdc("delete", "shop", "--drop-copies", "--yes", "shop")
    assert (result.code, list((harness.folder / "lake").iterdir())) == (75, [])
    assert "SRC001" in result.err
    assert "not finished" in cdc("status", "shop").out
    assert cdc("delete", "shop", "--yes", "shop").code == 0
    assert harness.source.read()["slot"] is None


def test_copies_of_another_state_store_are_not_deleted(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    record = harness.control("public.a")
    harness.commit("public_a", replace(record, fence=record.fence + 1, owner="another"))
    result = cdc("delete", "shop", "--yes", "shop")
    assert result.code == 64 and "CMD026" in result.err
    entry = harness.state.replicators.get("shop")
    assert entry is not None and entry.change is None


def test_a_copy_that_stayed_is_taken_again_by_a_resync(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    cdc("delete", "shop", "--yes", "shop")
    cdc("recreate", "shop")
    assert harness.run("r2").problems == ()
    assert harness.control("public.a").state.reason == "the replicator was deleted"
    harness.request(CommandKind.RESUME)
    harness.request(CommandKind.RESYNC)
    assert harness.run("r3").problems == ()
    assert harness.control("public.a").state.name is TableState.REPLICATING
    harness.source.change("public.a")
    harness.run("r4")
    assert harness.control("public.a").window == 2

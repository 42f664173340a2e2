"""The checker finds every damage it is meant to find, and none where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tests.faults.checker.delta import DeltaReader
from tests.faults.checker.invariants import Finding
from tests.faults.checker.judge import Judge
from tests.faults.damages import DAMAGES
from tests.faults.performing import Theatre, quiet
from tests.faults.world import World

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture(scope="module")
def lived(stage: Theatre) -> Iterator[World]:
    """Three tables, some windows; nobody writes any more."""
    world = stage.world_for("delta")
    world.add_table()
    assert quiet(world) == []
    world.writer.step(40)
    assert quiet(world) == []
    with world.writer.still():
        assert [*world.judge.judge(), *world.judge.rest()] == []
        yield world
    stage.close()
    assert stage.unsettled == []


@pytest.fixture
def judge(lived: World, tmp_path: Path) -> Judge:
    """Of a copy of all it has left, by one who has seen it whole."""
    folder = tmp_path / "copy"
    shutil.copytree(lived.folder, folder)
    seen = lived.judge
    commits = {table: list(found) for table, found in seen.histories.items()}
    return replace(
        seen,
        folder=folder,
        reader=DeltaReader(folder / "lake"),
        manifests=dict(seen.manifests),
        commit_files=dict(seen.commit_files),
        histories=commits,
    )


def found(judge: Judge) -> list[Finding]:
    return [*judge.judge(), *judge.rest()]


def test_what_is_whole_is_found_whole_by_a_judge_who_has_seen_nothing_yet(judge: Judge) -> None:
    assert found(replace(judge, manifests={}, commit_files={}, histories={})) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_found(judge: Judge, damage: str) -> None:
    invariant, do = DAMAGES[damage]
    do(judge)
    told = found(judge)
    assert invariant in {one.invariant for one in told}, told


def test_a_source_that_was_told_to_forget_too_early_is_found(judge: Judge) -> None:
    with psycopg.connect(judge.dsn, autocommit=True) as connection:
        connection.execute("create table elsewhere ()")
        connection.execute("select pg_create_logical_replication_slot('too_far', 'pgoutput')")
        try:
            told = found(replace(judge, slot="too_far"))
        finally:
            connection.execute("select pg_drop_replication_slot('too_far')")
    assert {one.invariant for one in told} == {"acknowledged last"}

"""The checker finds every corruption, and none where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.delta_tables import read
from tests.faults.checker.checker import Checker
from tests.faults.checker.delta import DeltaReader
from tests.faults.checker.invariants import Finding
from tests.faults.corruptions import CORRUPTIONS, forge, shape_of
from tests.faults.runner import FaultRunner, run_until_caught_up
from tests.faults.system import SystemUnderTest

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture(scope="module")
def ready(runner: FaultRunner) -> Iterator[SystemUnderTest]:
    """Three tables, some windows; the writer is stopped."""
    system = runner.system_for("delta")
    system.add_table()
    assert run_until_caught_up(system) == []
    system.writer.step(40)
    assert run_until_caught_up(system) == []
    with system.writer.still():
        assert [*system.checker.check(), *system.checker.check_at_rest()] == []
        yield system
    runner.close()
    assert runner.unsettled == []


@pytest.fixture
def checker(ready: SystemUnderTest, tmp_path: Path) -> Checker:
    """A checker of a copied folder that has seen the original."""
    folder = tmp_path / "copy"
    shutil.copytree(ready.folder, folder)
    seen = ready.checker
    commits = {table: list(found) for table, found in seen.histories.items()}
    return replace(
        seen,
        folder=folder,
        readers={"": DeltaReader(folder / "lake")},
        manifests=dict(seen.manifests),
        commit_files=dict(seen.commit_files),
        histories=commits,
    )


def found(checker: Checker) -> list[Finding]:
    return [*checker.check(), *checker.check_at_rest()]


def test_a_new_checker_has_no_findings_where_there_is_no_corruption(checker: Checker) -> None:
    assert found(replace(checker, manifests={}, commit_files={}, histories={})) == []


def test_upkeep_hides_no_commit_under_an_old_fence(checker: Checker) -> None:
    path = checker.folder / "lake" / shape_of(checker, "events").target
    write_deltalake(path, read(DeltaTable(path)), mode="overwrite")
    assert found(checker) == []
    forge(checker, "events", fence=0)
    assert "no commit under an old fence" in {one.invariant for one in found(checker)}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_corruption_is_found(checker: Checker, corruption: str) -> None:
    invariant, corrupt = CORRUPTIONS[corruption]
    corrupt(checker)
    findings = found(checker)
    assert invariant in {one.invariant for one in findings}, findings


def test_an_acknowledgement_before_all_tables_have_applied_the_changes_is_found(checker: Checker) -> None:
    with psycopg.connect(checker.dsn, autocommit=True) as connection:
        connection.execute("create table elsewhere ()")
        connection.execute("select pg_create_logical_replication_slot('too_far', 'pgoutput')")
        try:
            findings = found(replace(checker, slot="too_far"))
        finally:
            connection.execute("select pg_drop_replication_slot('too_far')")
    assert {one.invariant for one in findings} == {"acknowledged last"}

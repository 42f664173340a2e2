"""A log that leaves tables out for a while: their changes are lost, although the log has the later ones again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.command_line import replicated
from tests.provider.run_harness import FileSource, RunHarness

A, B = "public.a", "public.b"
WHY = "binlog_ignore_db = public"


class FilteringSource(FileSource):
    """Its file names the tables that the log leaves out."""

    def refused(self, tables: Sequence[TableTask]) -> Mapping[str, Problem]:
        return {
            table: Problem("SRC171", "the log leaves the table out", table, why) for table, why in self._found(tables)
        }

    def filtered(self, tables: Sequence[TableTask]) -> Mapping[str, str]:
        return dict(self._found(tables))

    def _found(self, tables: Sequence[TableTask]) -> list[tuple[str, str]]:
        return [(task.table, WHY) for task in tables if task.table in self.read().get("filtered", ())]


@pytest.fixture
def filtering(tmp_path: Path) -> RunHarness:
    harness = RunHarness(tmp_path)
    harness.source = FilteringSource(harness.source.path)
    replicated(harness)
    harness.source.write(filtered=[A])
    return harness


def windows(harness: RunHarness) -> list[set[str]]:
    """The tables with holes, by window."""
    return [{hole.table for hole in manifest.holes} for manifest in harness.replicator.log.manifests(1)]


def test_a_run_that_finds_the_filter_seals_a_hole_which_stays_when_the_filter_is_gone(filtering: RunHarness) -> None:
    before = len(windows(filtering))
    (problem,) = filtering.run("r2").problems
    assert "SRC171" in str(problem) and windows(filtering)[before:] == [{A}]
    assert f"{A}: changes are in no log ({WHY})" in filtering.log_lines
    filtering.run("r3")
    assert len(windows(filtering)) == before + 1, "one is enough"
    filtering.source.write(filtered=[])
    filtering.source.change(A, B)
    (problem,) = filtering.run("r4").problems
    assert "LOG004" in str(problem) and WHY in str(problem)
    assert filtering.state.tables("shop")[B].state is TableState.REPLICATING
    filtering.request(CommandKind.RESYNC, A)
    assert filtering.run("r5").problems == ()


def test_changes_of_other_tables_go_on_meanwhile(filtering: RunHarness) -> None:
    for number in range(2, 5):
        filtering.source.change(B)
        filtering.run(f"r{number}")
        row = filtering.state.tables("shop")[B]
        assert row.control is not None and row.control.window == filtering.replicator.log.sealed()


def test_a_table_without_a_copy_has_no_hole(tmp_path: Path) -> None:
    harness = RunHarness(tmp_path)
    harness.source = FilteringSource(harness.source.path)
    harness.source.write(filtered=[A])
    harness.run("r1")
    assert set().union(*windows(harness)) == set()
    harness.source.write(filtered=[])
    assert harness.run("r2").problems == ()

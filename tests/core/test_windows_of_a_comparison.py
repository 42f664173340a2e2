"""The windows that a comparison writes until its table is at the position of the snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.core.decisions.steps import StepKind, WindowResult
from airflow_cdc_provider.core.log.change_log import AUDIT, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs import verify
from spark_jobs.runtime.job import Job
from spark_jobs.windows.window_writer import WindowEnd
from tests.connectors.polled import SCHEMA, TASK
from tests.spark.scripted_table import ScriptedTable

CURSOR = ControlRecord("x", "s.t", "log", "tests", "a", 1, 0, "", State(TableState.REPLICATING, "2026-01-01"))


class Polls:
    reads_tables_apart = True

    def status(self, position: Position, tables: Sequence[str]) -> SourceStatus:
        assert tables == ["s.t"]
        return SourceStatus(True, {"s.t": f"{int(position['s.t']) + 1}"})


@pytest.mark.parametrize(
    ("cuts", "limits"),
    [
        ((WindowEnd.LIMIT,), ["1"]),
        ((WindowEnd.SIZE, WindowEnd.SIZE, WindowEnd.LIMIT), ["1", "2", "3"]),
        ((WindowEnd.HOLE, WindowEnd.LIMIT), ["1"]),
    ],
)
def test_each_window_of_a_polled_table_has_a_limit_of_its_own_and_none_follows_a_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: Sequence[WindowEnd], limits: list[str]
) -> None:
    """With the limit of the first window, the second one would have the numbers of its records again."""
    seen: list[str] = []

    def land_window(job: Job) -> tuple[Manifest, WindowResult]:
        limit, cut = job.step.limit, cuts[len(seen)]
        seen.append(limit["s.t"])
        holes = (Hole(AUDIT, "s.t", "1"),) if cut is WindowEnd.HOLE else ()
        window = job.step.window
        manifest = Manifest(
            "log", window, 1, job.step.lo, limit, "", "a", "", {"s.t": TableSlice("0" * 64)}, holes=holes
        )
        return manifest, WindowResult(window, job.step.lo, limit, 0, 0, 0, cut=cut)

    monkeypatch.setattr(verify, "land_window", land_window)
    table = ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]
    task = replace(TASK, control=CURSOR)
    job = table.job(StepKind.VERIFY, (task,), window=1, limit={"s.t": "1"})
    job.resources.__dict__["source"] = Polls()
    verify._land(job, task)
    assert seen == limits

"""Which errors of the tables of a window stop the others, for a source that reads each table separately."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.source import StreamSplit
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import (
    BadRecordFound,
    CdcError,
    PositionLost,
    SourceUnavailable,
    SourceUnreachable,
    StagingUnavailable,
)
from spark_jobs import extract
from spark_jobs.windows import split_reader
from spark_jobs.windows.split_reader import SplitResult, WindowSplit, land_split
from spark_jobs.windows.window_writer import LandedSplit, Limits, WindowEnd
from tests.connectors.polled import SCHEMA, TASK
from tests.spark.scripted_table import ScriptedTable

LANDED = LandedSplit(WindowEnd.LIMIT, None, {}, (), (), 0, 0, {})


@pytest.fixture
def table(tmp_path: Path) -> ScriptedTable:
    return ScriptedTable(None, tmp_path, SCHEMA)  # type: ignore[arg-type]


def failed(
    table: ScriptedTable, patch: pytest.MonkeyPatch, errors: dict[str, CdcError | None], kind: StepKind
) -> dict[str, str]:
    """Code by table."""
    job = table.job(kind, (TASK,), window=1)
    splits = [
        WindowSplit(job.step, job.secrets, {}, StreamSplit({}, {}, {}, name), number, Limits())
        for number, name in enumerate(errors)
    ]
    results = [SplitResult(None if error else LANDED, error, 1, 0.1) for error in errors.values()]
    patch.setattr(extract, "_choose_reader", lambda job, splits: lambda *given: results)
    return {name: problem.code for name, problem in extract._read_splits(job, splits).failed.items()}


@pytest.mark.parametrize("others", [{"s.u": None}, {}])
def test_an_error_that_a_retry_helps_is_one_of_its_table(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch, others: dict[str, CdcError | None]
) -> None:
    errors = {"s.t": SourceUnavailable.of("SRC056", "a value"), **others}
    assert failed(table, monkeypatch, errors, StepKind.EXTRACT) == {"s.t": "SRC056"}


@pytest.mark.parametrize(
    "error",
    [SourceUnreachable.of("CON010", "x"), StagingUnavailable.of("STG001", "x"), PositionLost.of("SRC013", "x")],
)
def test_an_error_of_the_connection_stops_the_window(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch, error: CdcError
) -> None:
    with pytest.raises(type(error)):
        failed(table, monkeypatch, {"s.t": error, "s.u": None}, StepKind.EXTRACT)


@pytest.mark.parametrize("error", [SourceUnavailable.of("SRC056", "x"), BadRecordFound.of("CPY009", "x")])
def test_a_comparison_needs_its_table(table: ScriptedTable, monkeypatch: pytest.MonkeyPatch, error: CdcError) -> None:
    with pytest.raises(type(error)):
        failed(table, monkeypatch, {"s.t": error}, StepKind.VERIFY)


@pytest.mark.parametrize("name", ["s.t", ""])
def test_an_unexpected_error_of_a_table_is_one_of_this_table(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fails(split: WindowSplit) -> LandedSplit:
        raise ValueError("the key has another length")

    monkeypatch.setattr(split_reader, "_land", fails)
    job = table.job(StepKind.EXTRACT, (TASK,), window=1)
    split = WindowSplit(job.step, job.secrets, {}, StreamSplit({}, {}, {}, name), 0, Limits())
    if not name:
        with pytest.raises(ValueError):
            land_split(split)
        return
    error = pickle.loads(pickle.dumps(land_split(split).error))
    assert type(error) is SourceUnavailable and error.problems[0].code == "JOB001"
    assert replace(error.problems[0], found="").do


def test_a_table_whose_first_interval_cannot_be_read_keeps_its_start_position(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would start at the later position of the other tables."""
    job = table.job(StepKind.EXTRACT, (TASK,), window=1)
    at = {"s.t": "t 1", "s.u": "u 1"}
    streams = [StreamSplit({name: begin}, {name: "limit"}, {}, name) for name, begin in at.items()]
    splits = [WindowSplit(job.step, job.secrets, {}, one, number, Limits()) for number, one in enumerate(streams)]
    results = [SplitResult(None, SourceUnavailable.of("SRC056", "x"), 1, 0.1), SplitResult(LANDED, None, 1, 0.1)]
    monkeypatch.setattr(extract, "_choose_reader", lambda job, splits: lambda *given: results)
    read = extract._read_splits(job, splits)
    assert extract._end_position({"s.u": "u 1"}, read) == {"s.t": "t 1", "s.u": "limit"}

"""Random histories of the reference model: the versions and the changes of every row, however the log is cut."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.history import History
from tests.model import seeds
from tests.model.change_records import KEYED, ChangeRecordWriter
from tests.model.histories import KEY, RandomHistories, random_histories
from tests.model.source import Row
from tests.model.versions import events, versions
from tests.spark.model_run import json_row
from tests.spark.scripted_table import ScriptedTable

pytestmark = pytest.mark.jvm

WINDOWS, HISTORIES = 3, 40


def applied(spark: SparkSession, folder: Path, history: History, made: RandomHistories) -> ScriptedTable:
    """The windows in the batches of the model; each batch is merged twice and counts once."""
    table, writer = ScriptedTable(spark, folder, KEYED, history=history), ChangeRecordWriter(KEYED)
    table.copy([json_row(row) for row in made.source.start])
    windows = iter(made.windows)
    for batch in made.batches:
        for _ in range(batch):
            parts = [writer.records(one) for one in next(windows) if one.changes]
            table.land([record for now, _ in parts for record in now] + [one for _, later in parts for one in later])
        job, staged = table.staged()
        if staged.outcome is not Outcome.UNCHANGED:
            assert staged.outcome is Outcome.DONE, staged.problem
            assert table.merged(job).outcome is Outcome.DONE
            assert table.merged(job).outcome is Outcome.FENCED
    return table


def comparable(row: tuple[Any, ...]) -> Row:
    """Floats as text: zeros differ by their sign, and NaN is like NaN."""
    return tuple(
        str(float(value)) if position == len(row) - 1 and value is not None else value
        for position, value in enumerate(row)
    )


@pytest.fixture
def made() -> RandomHistories:
    seed = seeds.seed()
    print(seeds.replayed_by(seed, HISTORIES, __file__))
    return random_histories(seed, seeds.histories(HISTORIES), WINDOWS, keyed=True, only=seeds.only())


def test_every_version_of_every_row_is_that_of_the_source(
    spark: SparkSession, tmp_path: Path, made: RandomHistories
) -> None:
    table = applied(spark, tmp_path, History.SCD2, made)
    found = Counter(
        (comparable(row[:-3]), int(row[-3], 16), None if row[-1] else int(row[-2], 16))
        for row in table.rows("_cdc_sequence", "_cdc_order", "_cdc_is_current")
    )
    expected = Counter((comparable(one.row), one.began, one.ended) for one in versions(made.source))
    assert found - expected == Counter() and expected - found == Counter()


@pytest.mark.nightly
def test_every_change_of_every_row_is_in_the_log_once(
    spark: SparkSession, tmp_path: Path, made: RandomHistories
) -> None:
    table = applied(spark, tmp_path, History.LOG, made)
    found = Counter(
        (int(sequence, 16), tuple(row[:KEY]), operation in ("delete", "truncate"))
        for *row, sequence, operation in table.rows("_cdc_sequence", "_cdc_operation")
    )
    expected = Counter((0, row[:KEY], False) for row in made.source.start)
    expected += Counter((one.number, one.key or (None,) * KEY, one.row is None) for one in events(made.source))
    assert found == expected

"""Random histories of the reference model through the real jobs: windows and batches as they are cut, each batch merged
twice; then a repair of the whole log; then all windows as one batch.

Or delivered in any order: then only the newest version can be compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Regime
from tests.model import seeds
from tests.model.change_records import KEYED, ChangeRecordWriter
from tests.model.histories import Completeness, RandomHistories, random_histories
from tests.spark.model_checks import check_every_version, check_newest_version
from tests.spark.model_run import ModelRun, json_row
from tests.spark.scripted_table import ScriptedTable

WINDOWS = 3
TEST_FILES = {True: "test_merge_random.py", False: "test_keyless_random.py"}
"""By whether the table has a key."""


def run_some_histories(spark: SparkSession, folder: Path, keyed: bool, on_delete: OnDelete) -> None:
    """120 histories, as they are cut. With a seed that was chosen, as one batch, too."""
    seed, histories = seeds.seed(), seeds.histories(120)
    print(replayed_by(TEST_FILES[keyed], on_delete, seed, histories))
    run_histories(spark, folder, keyed, on_delete, seed, histories, whole=seeds.chosen())


def run_histories(
    spark: SparkSession, folder: Path, keyed: bool, on_delete: OnDelete, seed: str, histories: int, whole: bool
) -> RandomHistories:
    """``whole``: as one batch, too. Raises an AssertionError with the command that repeats the histories."""
    completeness = Completeness.COMPLETE_UPSERTS if on_delete is OnDelete.IGNORE else Completeness.PARTIAL
    generated = random_histories(seed, histories, WINDOWS, keyed, seeds.only(), completeness)
    try:
        cut = ModelRun(spark, folder / "cut", generated, on_delete).run()
        if keyed:
            cut.repair()
        check_every_version(cut)
        if whole:
            check_every_version(ModelRun(spark, folder / "whole", generated, on_delete, at_once=True).run())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{replayed_by(TEST_FILES[keyed], on_delete, seed, histories)}") from error
    return generated


def run_shuffled_histories(
    spark: SparkSession, folder: Path, on_delete: OnDelete, seed: str, histories: int
) -> RandomHistories:
    """A source without order: its changes arrive in any order, some of them twice. Raises as ``run_histories``."""
    generated = random_histories(seed, histories, WINDOWS, True, seeds.only(), Completeness.COMPLETE)
    random = Random(f"{seed} order")
    schema = replace(KEYED, regime=Regime.UNORDERED)
    table, writer = ScriptedTable(spark, folder, schema, on_delete), ChangeRecordWriter(schema)
    table.copy([json_row(row) for row in generated.source.state_at(0).elements()])
    sent = [record for window in generated.windows for one in window for part in writer.records(one) for record in part]
    random.shuffle(sent)
    cuts = [0, *sorted(random.randrange(len(sent) + 1) for _ in range(WINDOWS - 1)), len(sent)]
    for start, end in pairwise(cuts):
        result = table.apply(sent[start:end])
        assert result.outcome in (Outcome.DONE, Outcome.UNCHANGED), result.problem
    try:
        check_newest_version(table, generated)
    except AssertionError as error:
        raise AssertionError(
            f"{error}\n{replayed_by('test_unordered_random.py', on_delete, seed, histories)}"
        ) from error
    return generated


def run_whole_row_histories(
    spark: SparkSession, folder: Path, on_delete: OnDelete, seed: str, histories: int
) -> RandomHistories:
    """A source that sends whole rows and never truncates: no batch needs Spark. Raises as ``run_histories``."""
    generated = random_histories(seed, histories, WINDOWS, True, seeds.only(), Completeness.COMPLETE)
    try:
        check_every_version(ModelRun(spark, folder, generated, on_delete).run())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{replayed_by('test_plain_random.py', on_delete, seed, histories)}") from error
    return generated


def replayed_by(test: str, on_delete: OnDelete, seed: str, histories: int) -> str:
    return seeds.replayed_by(seed, histories, f"tests/spark/{test} -k {on_delete}")

"""One random story, as it is cut, each batch twice; then the whole log once more; then all of it as one batch.

Or told in any order: then only the end can be judged."""

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
from tests.spark.hand_made import HandMade
from tests.spark.judged import judge, judge_end
from tests.spark.played import Played, told_row

WINDOWS = 3
STORIES = {True: "test_merge_random.py", False: "test_keyless_random.py"}
"""Whether the table has a key."""


def play_some(spark: SparkSession, folder: Path, keyed: bool, on_delete: OnDelete) -> None:
    """A story of 120 histories, as it is cut. With a seed that was chosen, as one batch, too."""
    seed, histories = seeds.seed(), seeds.histories(120)
    print(replayed_by(STORIES[keyed], on_delete, seed, histories))
    play(spark, folder, keyed, on_delete, seed, histories, whole=seeds.chosen())


def play(
    spark: SparkSession, folder: Path, keyed: bool, on_delete: OnDelete, seed: str, histories: int, whole: bool
) -> RandomHistories:
    """``whole``: as one batch, too. Raises AssertionError that says how to play the story again."""
    telling = Completeness.COMPLETE_UPSERTS if on_delete is OnDelete.IGNORE else Completeness.PARTIAL
    told = random_histories(seed, histories, WINDOWS, keyed, seeds.only(), telling)
    try:
        cut = Played(spark, folder / "cut", told, on_delete).play()
        if keyed:
            cut.repair()
        judge(cut)
        if whole:
            judge(Played(spark, folder / "whole", told, on_delete, at_once=True).play())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{replayed_by(STORIES[keyed], on_delete, seed, histories)}") from error
    return told


def play_shuffled(spark: SparkSession, folder: Path, on_delete: OnDelete, seed: str, histories: int) -> RandomHistories:
    """A source without order: everything it tells comes in any order, some of it twice. Raises as ``play``."""
    told = random_histories(seed, histories, WINDOWS, True, seeds.only(), Completeness.COMPLETE)
    random = Random(f"{seed} order")
    schema = replace(KEYED, regime=Regime.UNORDERED)
    table, teller = HandMade(spark, folder, schema, on_delete), ChangeRecordWriter(schema)
    table.copy([told_row(row) for row in told.source.state_at(0).elements()])
    sent = [record for window in told.windows for one in window for part in teller.records(one) for record in part]
    random.shuffle(sent)
    cuts = [0, *sorted(random.randrange(len(sent) + 1) for _ in range(WINDOWS - 1)), len(sent)]
    for start, end in pairwise(cuts):
        result = table.apply(sent[start:end])
        assert result.outcome in (Outcome.DONE, Outcome.UNCHANGED), result.problem
    try:
        judge_end(table, told)
    except AssertionError as error:
        raise AssertionError(
            f"{error}\n{replayed_by('test_unordered_random.py', on_delete, seed, histories)}"
        ) from error
    return told


def play_plainly(spark: SparkSession, folder: Path, on_delete: OnDelete, seed: str, histories: int) -> RandomHistories:
    """A source that tells whole rows and never truncates: nothing of its batches needs Spark. Raises as ``play``."""
    told = random_histories(seed, histories, WINDOWS, True, seeds.only(), Completeness.COMPLETE)
    try:
        judge(Played(spark, folder, told, on_delete).play())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{replayed_by('test_plain_random.py', on_delete, seed, histories)}") from error
    return told


def replayed_by(test: str, on_delete: OnDelete, seed: str, histories: int) -> str:
    return seeds.replayed_by(seed, histories, f"tests/spark/{test} -k {on_delete}")

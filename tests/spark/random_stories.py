"""One random story, as it is cut, each batch twice; then the whole log once more; then all of it as one batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.definition import OnDelete
from tests.model import seeds
from tests.model.histories import Story, story
from tests.spark.judged import judge
from tests.spark.played import Played

ON_DELETE = "CDC_ON_DELETE"
WINDOWS = 3


def play_one_of(spark: SparkSession, folder: Path, keyed: bool, ways: Sequence[OnDelete]) -> None:
    """A story of 120 new histories, as it is cut; the seed decides for one of the ``ways``. Told to play a story again,
    it is that one, in all ways."""
    seed, histories = seeds.seed(), seeds.histories(120)
    on_delete = OnDelete(os.environ.get(ON_DELETE) or Random(seed).choice(ways))
    print(replayed_by(keyed, on_delete, seed, histories))
    play(spark, folder, keyed, on_delete, seed, histories, whole=seeds.again())


def play(
    spark: SparkSession, folder: Path, keyed: bool, on_delete: OnDelete, seed: str, histories: int, whole: bool
) -> Story:
    """``whole``: as one batch, too. Raises AssertionError that says how to play the story again."""
    told = story(seed, histories, WINDOWS, keyed, seeds.only(), whole_upserts=on_delete is OnDelete.IGNORE)
    try:
        cut = Played(spark, folder / "cut", told, on_delete).play()
        if keyed:
            cut.repair()
        judge(cut)
        if whole:
            judge(Played(spark, folder / "whole", told, on_delete, at_once=True).play())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{replayed_by(keyed, on_delete, seed, histories)}") from error
    return told


def replayed_by(keyed: bool, on_delete: OnDelete, seed: str, histories: int) -> str:
    test = "test_merge_random.py" if keyed else "test_keyless_random.py"
    environment = f"{seeds.SEED}={seed} {seeds.HISTORIES}={histories} {ON_DELETE}={on_delete}"
    return f"again: {environment} pytest tests/spark/{test}; one history alone: {seeds.HISTORY}=…"

"""Random histories of which a part cannot be read or held: all other keys are as at the source, in the end all are."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete, Quarantine
from tests.model import seeds
from tests.model.histories import COLUMNS, KEY, random_histories
from tests.model.source import Row
from tests.spark.contract.sessions import small_session
from tests.spark.played import Played
from tests.spark.spoiled import decide, lost_values, unreadable

pytestmark = pytest.mark.jvm

OFTEN = 0.04
"""How many of the changes are spoiled."""


class Spoiled(Played):
    """``spoiled``: by order key, what a record was and what became of it."""

    def __init__(self, spark: SparkSession, folder: Path, seed: str, histories: int) -> None:
        super().__init__(
            small_session(spark), folder, random_histories(seed, histories, 2, True, seeds.only()), OnDelete.HARD
        )
        rule = replace(self.table.rule, on_bad_record=OnBadRecord.QUARANTINE, quarantine=Quarantine(10_000))
        self.table.rule = rule
        self.seed = seed
        self.spoiled: dict[str, tuple[ChangeRecord, ChangeRecord]] = {}

    def _records(self, window):  # type: ignore[no-untyped-def]
        return [self._spoil(record) for record in super()._records(window)]

    def _spoil(self, record: ChangeRecord) -> ChangeRecord:
        """The same record is spoiled whenever it comes, and in the same way."""
        random = Random(f"{self.seed} {record.order_key}")
        if record.op == "truncate" or random.random() > OFTEN:
            return record
        image = json.loads(record.after or record.before or "{}")
        told = [name for name in COLUMNS[KEY:] if name in image]
        way = random.choice(("whole", "columns", "value"))
        if way == "value" and "n" in told and record.op != "delete":
            bad = replace(record, after=canonical(image | {"n": "much"}))
        elif way == "columns" and told:
            bad = unreadable(record, *random.sample(told, random.randint(1, len(told))))
        else:
            bad = unreadable(record, *image)
        self.spoiled[record.order_key] = record, bad
        return bad

    def _apply(self) -> None:
        job, staged = self.table.staged()
        if staged.outcome is Outcome.UNCHANGED:
            return
        assert staged.outcome is Outcome.DONE, staged.problem
        assert self.table.merged(job).outcome is Outcome.DONE
        self.judge()

    def mend_all(self) -> None:
        for one in self.table.log.bad_records(self.table.schema.table):
            was, bad = self.spoiled[one.record.order_key]
            told = json.loads(was.before if was.op == "delete" else was.after or "{}")
            values = lost_values(was, bad) if bad.op == "unreadable" else {"n": told["n"]}
            decide(self.table, bad, DecisionKind.REPLAY, **values)
        self._apply()
        assert self.carry.counts == {}

    def judge(self) -> None:
        """Every key for which nothing waits is as at the source."""
        waiting = self._waiting()
        told = [tuple(map(_as_told, row)) for row in self.table.rows()]
        held = Counter(row for row in told if row[:KEY] not in waiting)
        rows = self.story.source.state_at(self.position)
        wanted = Counter({row: n for row, n in rows.items() if row[:KEY] not in waiting})
        assert held == wanted, f"{self.seed}: {sorted((held - wanted) + (wanted - held), key=str)[:5]}"

    @property
    def carry(self) -> CarryOver:
        control = self.table.held().control
        return control.carry if control else NOTHING

    def _waiting(self) -> set[Row]:
        keys: set[Row] = set()
        for file in self.carry.files:
            with self.table.log.store.open_input(file.path) as content:
                for row in pq.read_table(content, columns=["op", "key", "key_before"]).to_pylist():
                    keys.add(tuple(json.loads(row["key_before"] if row["op"] == "delete" else row["key"])))
        return keys


def _as_told(value: object) -> object:
    if not isinstance(value, float):
        return value
    return str(value) if value == value else "NaN"


def test_all_keys_but_those_that_wait_are_as_at_the_source_and_in_the_end_all_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed, histories = seeds.seed(), seeds.histories(80)
    print(f"again: {seeds.SEED}={seed} {seeds.HISTORIES}={histories} pytest {Path(__file__).name}")
    played = Spoiled(spark, tmp_path, seed, histories)
    played.play()
    assert played.spoiled
    played.mend_all()

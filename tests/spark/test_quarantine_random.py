"""Random histories with records that cannot be decoded or held: all other keys equal the source, and finally all do."""

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
from tests.spark.bad_records import decide, lost_values, unreadable
from tests.spark.contract.sessions import small_session
from tests.spark.model_run import ModelRun

pytestmark = [pytest.mark.jvm, pytest.mark.nightly]

OFTEN = 0.04
"""The fraction of damaged changes."""


class DamagedRun(ModelRun):
    """``damaged``: by order key, a record before and after its damage."""

    def __init__(self, spark: SparkSession, folder: Path, seed: str, histories: int) -> None:
        super().__init__(
            small_session(spark), folder, random_histories(seed, histories, 2, True, seeds.only()), OnDelete.HARD
        )
        rule = replace(self.table.rule, on_bad_record=OnBadRecord.QUARANTINE, quarantine=Quarantine(10_000))
        self.table.rule = rule
        self.seed = seed
        self.damaged: dict[str, tuple[ChangeRecord, ChangeRecord]] = {}

    def _records(self, window):  # type: ignore[no-untyped-def]
        return [self._damage(record) for record in super()._records(window)]

    def _damage(self, record: ChangeRecord) -> ChangeRecord:
        """A record is damaged at each delivery, in the same way."""
        random = Random(f"{self.seed} {record.order_key}")
        if record.op == "truncate" or random.random() > OFTEN:
            return record
        image = json.loads(record.after or record.before or "{}")
        known = [name for name in COLUMNS[KEY:] if name in image]
        way = random.choice(("whole", "columns", "value"))
        if way == "value" and "n" in known and record.op != "delete":
            bad = replace(record, after=canonical(image | {"n": "much"}))
        elif way == "columns" and known:
            bad = unreadable(record, *random.sample(known, random.randint(1, len(known))))
        else:
            bad = unreadable(record, *image)
        self.damaged[record.order_key] = record, bad
        return bad

    def _apply(self) -> None:
        job, staged = self.table.staged()
        if staged.outcome is Outcome.UNCHANGED:
            return
        assert staged.outcome is Outcome.DONE, staged.problem
        assert self.table.merged(job).outcome is Outcome.DONE
        self.check()

    def correct_all(self) -> None:
        for one in self.table.log.bad_records(self.table.schema.table):
            was, bad = self.damaged[one.record.order_key]
            known = json.loads(was.before if was.op == "delete" else was.after or "{}")
            values = lost_values(was, bad) if bad.op == "unreadable" else {"n": known["n"]}
            decide(self.table, bad, DecisionKind.REPLAY, **values)
        self._apply()
        assert self.carry.counts == {}

    def check(self) -> None:
        """Every key without a waiting record equals the source."""
        waiting = self._waiting()
        known = [tuple(map(_as_in_model, row)) for row in self.table.rows()]
        found = Counter(row for row in known if row[:KEY] not in waiting)
        rows = self.histories.source.state_at(self.position)
        expected = Counter({row: n for row, n in rows.items() if row[:KEY] not in waiting})
        assert found == expected, f"{self.seed}: {sorted((found - expected) + (expected - found), key=str)[:5]}"

    @property
    def carry(self) -> CarryOver:
        control = self.table.target_state().control
        return control.carry if control else NOTHING

    def _waiting(self) -> set[Row]:
        keys: set[Row] = set()
        for file in self.carry.files:
            with self.table.log.store.open_input(file.path) as content:
                for row in pq.read_table(content, columns=["op", "key", "key_before"]).to_pylist():
                    keys.add(tuple(json.loads(row["key_before"] if row["op"] == "delete" else row["key"])))
        return keys


def _as_in_model(value: object) -> object:
    if not isinstance(value, float):
        return value
    return str(value) if value == value else "NaN"


def test_all_keys_that_do_not_wait_equal_the_source_and_finally_all_keys_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed, histories = seeds.seed(), seeds.histories(80)
    print(f"again: {seeds.SEED}={seed} {seeds.HISTORIES}={histories} pytest {Path(__file__).name}")
    damaged_run = DamagedRun(spark, tmp_path, seed, histories)
    damaged_run.run()
    assert damaged_run.damaged
    damaged_run.correct_all()

"""Random histories with omissions: whenever rows are fetched, in the end every row equals the source.

The source is a set of dicts with a clock. Its stream omits changes, or their values; a fetch returns the newest row,
with a time truncated to whole seconds, and sometimes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome, TableTask
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.model import seeds
from tests.spark.contract.control_records import control, require_accounted
from tests.spark.contract.sessions import small_session
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, False), Column("v", TEXT), Column("w", TEXT)), ("id",))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TICK = timedelta(milliseconds=400)
CHANGES_PER_KEY, WINDOWS = 9, 3
GAPS, UNSENT, SILENT = 0.2, 0.1, 0.3


class HistorySource:
    """``history``: per key the row after each of its changes, None if it is deleted, and the tick of the change. The
    changes up to ``now`` have happened."""

    def __init__(self, random: Random, keys: int) -> None:
        self.random, self.now, self.reliable = random, 0, False
        self.history: dict[int, list[tuple[int, Row | None]]] = {key: [(0, _row(key, "0"))] for key in range(keys)}

    @staticmethod
    def identity() -> dict[str, str]:
        return {}

    def row(self, key: int) -> tuple[int, Row | None]:
        return [one for one in self.history[key] if one[0] <= self.now][-1]

    def fetch(self, table: TableTask, schema: TableSchema, records: Sequence[ChangeRecord]) -> Iterator[ChangeRecord]:
        for name in (one.key or one.key_before or "" for one in records):
            if not self.reliable and self.random.random() < SILENT:
                if self.random.random() < 0.5:
                    raise SourceUnavailable.of("SRC999", "the source is away")
                continue
            tick, row = self.row(int(name[1:-1]))
            since = (NOON + tick * TICK).replace(microsecond=0)
            if row is None:
                yield ChangeRecord("public.t", "delete", "", "", key_before=name, commit_ts=since)
            else:
                yield ChangeRecord(
                    "public.t", "read", "", "", key=name, after=canonical(row), after_complete=True, commit_ts=since
                )


class Stream(ScriptedTable):
    """Changes of random keys, one per tick, in order."""

    def changes(self, source: HistorySource, random: Random, ticks: int) -> list[ChangeRecord]:
        return [self._change(source, random, tick + 1) for tick in range(ticks)]

    def _change(self, source: HistorySource, random: Random, tick: int) -> ChangeRecord:
        key = random.choice(list(source.history))
        history = source.history[key]
        before = history[-1][1]
        if before is None:
            after = _row(key, str(tick))
            record = self.insert(after)
        elif random.random() < 0.2:
            after, record = None, self.delete({"id": key})
        else:
            changed = {random.choice("vw"): str(tick)}
            after = {**before, **changed}
            record = self.update({"id": key, **changed}, complete=False)
        history.append((tick, after))
        return replace(self._withheld(record, random, key), commit_ts=NOON + tick * TICK)

    def _withheld(self, record: ChangeRecord, random: Random, key: int) -> ChangeRecord:
        chance = random.random()
        if chance < GAPS:
            return ChangeRecord("public.t", "gap", record.order_key, record.schema_id, key=canonical([key]))
        if chance < GAPS + UNSENT and record.op != "delete":
            return replace(record, after=canonical({"id": key}), after_complete=False, refetch=("v", "w"))
        return record


def _row(key: int, value: str) -> Row:
    return {"id": key, "v": value, "w": value}


def test_rows_equal_the_source_after_random_omissions_and_fetches(spark: SparkSession, tmp_path: Path) -> None:
    seed, keys = seeds.seed(), seeds.histories(60)
    print(f"again: {seeds.SEED}={seed} {seeds.HISTORIES}={keys} pytest {Path(__file__).name}")
    random = Random(seed)
    on_delete = random.choice([OnDelete.HARD, OnDelete.SOFT])
    source = HistorySource(random, keys)
    table = Stream(small_session(spark), tmp_path, SCHEMA, on_delete=on_delete, source=source)
    table.copy([_row(key, "0") for key in source.history])
    ticks = keys * CHANGES_PER_KEY
    sent = table.changes(source, random, ticks)
    cuts = sorted(random.sample(range(1, ticks), WINDOWS - 1))
    for start, end in zip([0, *cuts], [*cuts, ticks], strict=True):
        source.now = min(ticks, end + random.randrange(ticks // 4))
        table.land(sent[start:end])
        batch(table)
    source.now, source.reliable = ticks, True
    batch(table)
    assert control(table).carry.waiting == 0
    rows = table.read_at(None)
    live = rows.where("NOT _cdc_deleted") if on_delete is OnDelete.SOFT else rows
    found = sorted((row["id"], row["v"], row["w"]) for row in live.collect())
    assert found == [(key, row["v"], row["w"]) for key in source.history if (row := source.row(key)[1])], seed


def batch(table: ScriptedTable) -> None:
    """Stage and merge the new windows; every record is accounted for."""
    job, staged = table.staged()
    if not staged.detail:
        assert staged.outcome is Outcome.UNCHANGED or (staged.problem and staged.problem.code in ("SRC999", "SRC020"))
        return
    assert table.merged(job).outcome is Outcome.DONE
    require_accounted(control(table))

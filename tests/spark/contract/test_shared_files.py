"""The files of a Delta table that several copies share: which are read, counted and taken back for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Blocked, Fenced
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.own_rows import bounded_column, own_rows
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.delta import shared_rows
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, StaleToken
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeySet
from airflow_cdc_provider.targets.delta.local_engine.own_files import restored_own
from airflow_cdc_provider.targets.delta.target import DeltaTarget
from airflow_cdc_provider.targets.target import EarlierVersion
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import TEXT
from tests.spark.contract.kits import KITS, TargetKit
from tests.spark.contract.once import once_at
from tests.spark.contract.shards import Shard, two

pytestmark = pytest.mark.jvm

COPIED = [(1, "x"), (2, "y")]


@pytest.fixture(params=["delta", pytest.param("delta in Spark", marks=pytest.mark.nightly)])
def kit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TargetKit]:
    with KITS[request.param](spark, tmp_path, request.getfixturevalue) as kit:
        yield kit


def past_of(table: Shard, window: int) -> EarlierVersion:
    found = table.job_tables().version_at_or_before(table.name, "t", window)
    assert found is not None
    return found


def ended(table: Shard, past: EarlierVersion) -> None:
    """As the end of a rewind."""
    state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
    record = replace(past.control, fence=control(table).fence + 1, state=state, nonce="ended")
    table.job_tables().fence("t", table.target_state(), record)


def test_the_rows_of_one_are_counted_where_names_in_files_are_other_ones(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path, Column("v 1", TEXT))
    a.apply([a.insert(a.row(3, "z"))])
    assert (a.row_count(), b.row_count()) == (3, 2)


def test_the_rows_of_one_are_taken_back_and_those_of_the_others_stay(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two(kit, tmp_path)
    a.apply([a.update(a.row(1, "X"))])
    a.apply([a.delete(a.row(2, "y")), a.insert(a.row(3, "z"))])
    tables, past, stale = a.job_tables(), past_of(a, 1), a.target_state()
    assert isinstance(tables, DeltaTarget)
    nonce = fence(a, TableState.REWINDING).nonce
    with pytest.raises(Fenced):
        tables.restore_version("t", stale, past.version)
    own, label = own_rows(a.rule), CommitLabel(tables.app_id(a.name), stale.token or 0, "")
    assert own is not None
    with pytest.raises(StaleToken):
        restored_own(tables.store, "t", own, past.version, label)
    meanwhile = once_at("restore.before", lambda: b.apply([b.update(b.row(1, "B"))]))
    monkeypatch.setattr(shared_rows, "failpoint", meanwhile)
    tables.restore_version("t", a.target_state(), past.version)
    assert (a.own(), b.own()) == ([(1, "X"), (2, "y")], [(1, "B"), (2, "y")])
    assert control(a).nonce == nonce and not a.target_state().restored
    again = a.target_state()
    tables.restore_version("t", again, past.version)
    assert a.target_state() == again, "a repetition finds nothing to do"
    assert (control(b).window, b.target_state().restored) == (1, False)
    ended(a, past)
    job, _ = a.staged()
    assert a.merged(job).outcome is Outcome.DONE
    assert (a.own(), b.own()) == ([(1, "X"), (3, "z")], [(1, "B"), (2, "y")])


@pytest.mark.nightly
def test_rows_are_counted_and_taken_back_after_a_compaction_but_not_to_one(kit: TargetKit, tmp_path: Path) -> None:
    a, b = two(kit, tmp_path)
    a.apply([a.insert(a.row(3, "z")), a.update(a.row(1, "X"))])
    kit.compact()
    assert (a.row_count(), b.row_count()) == (3, 2)
    a.apply([a.delete(a.row(2, "y"))])
    assert (a.row_count(), b.row_count()) == (2, 2)
    before, compacted = past_of(a, 0), a.target_state().version
    fence(a, TableState.REWINDING)
    with pytest.raises(Blocked, match=r"TGT024.*several source tables"):
        a.job_tables().restore_version("t", a.target_state(), compacted or 0)
    a.job_tables().restore_version("t", a.target_state(), before.version)
    assert (a.own(), b.own(), a.row_count(), b.row_count()) == (COPIED, COPIED, 2, 2)
    ended(a, before)
    job, _ = a.staged()
    assert a.merged(job).outcome is Outcome.DONE
    assert (a.own(), b.own()) == ([(1, "X"), (3, "z")], COPIED)


def test_a_merge_reads_the_files_with_its_keys_of_its_source_table_alone(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = two(kit, tmp_path)
    for table in (a, b):
        table.apply([table.insert(table.row(key, "n")) for key in (11, 12)])
    read = list[str]()
    real = KeySet.matches

    def matches(self: KeySet, store: Any, table: str, file: Any) -> Any:
        read.append(file.path)
        return real(self, store, table, file)

    monkeypatch.setattr(KeySet, "matches", matches)
    assert a.apply([a.update(a.row(12, "N"))]).outcome is Outcome.DONE
    assert bounded_column(control(a).schema or a.schema).name == "id"
    assert len(read) == (1 if kit.engine is EngineMode.AUTO else 0), "Spark skips files by the condition of its MERGE"
    assert a.own() == [(1, "x"), (11, "n"), (12, "N"), (2, "y")]
    assert b.own() == [(1, "x"), (11, "n"), (12, "n"), (2, "y")]

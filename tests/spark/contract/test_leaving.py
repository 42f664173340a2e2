"""A replicator leaves a target, or gives its tables to one of another name. Each call may be repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, Fenced
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.targets.database.staging import create_shadow_table
from airflow_cdc_provider.targets.registry import open_targets
from airflow_cdc_provider.targets.target import ReleasesTables, TakesOverTables, TargetState, TargetTables
from spark_jobs.writers import database
from tests.spark.contract.control_records import control
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm

WITH_OWN_CONTROL_TABLES = ("bigquery", "redshift", "snowflake")
"""Targets whose control tables go with their copy, and the view of the cut with the last one."""


def leaving(table: KitTable, name: str = "hand") -> ReleasesTables:
    target = target_of(table, name)
    assert isinstance(target, ReleasesTables)
    return target


def target_of(table: KitTable, name: str) -> TargetTables:
    return open_targets(replace(table.definition, name=name), table.secrets, table.log).only


def state_of(table: KitTable, name: str) -> TargetState:
    return target_of(table, name).state("public.t", "t")


def publish(table: KitTable) -> None:
    current = table.target_state()
    one = CutTable("t", control(table).window, current.identity, current.version)
    table.job_tables().publish_cut(Cut("hand", 1, "2026-01-01T00:00:00Z", (one,)))


def test_a_released_copy_stays_and_a_dropped_one_goes(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    publish(table)
    assert kit.cut("id", "v") == (1, [(1, "a")])
    expected, identity = table.target_state(), table.target_state().identity
    for _ in range(2):
        leaving(table).withdraw_cut()
        leaving(table).release("public.t", "t")
    assert table.rows() == [(1, "a", "w")]
    if kit.kind not in WITH_OWN_CONTROL_TABLES:
        assert kit.cut("id", "v") is None
    if not kit.keeps_versions:
        assert table.target_state().control is None
        assert expected.control is not None
        with pytest.raises(CdcError):
            table.job_tables().fence("t", expected, expected.control.fenced())
    leaving(table).drop("t", "of another table")
    assert table.rows() == [(1, "a", "w")]
    for _ in range(2):
        leaving(table).drop("t", identity)
        leaving(table).release("public.t", "t")
    assert table.target_state().exists is False


def test_one_listing_shows_which_tables_exist(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    target = table.job_tables()
    assert set(target.existing(("t", "other"))) == set()
    table.copy([KeyedChanges(table, 0).row(1, "a", "w")])
    assert set(target.existing(("t", "other"))) == {"t"}
    kit.drop()
    assert set(target.existing(("t", "other"))) == set()


def test_a_table_of_another_replicator_is_not_released(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    table.copy([KeyedChanges(table, 0).row(1, "a", "w")])
    publish(table)
    leaving(table, "another").withdraw_cut()
    leaving(table, "another").release("public.t", "t")
    assert kit.cut("id", "v") == (1, [(1, "a")])
    changes = KeyedChanges(table, 0)
    table.apply([changes.update(1, "b", "w")])
    assert table.rows() == [(1, "b", "w")]


def test_the_release_of_a_dropped_copy_spares_the_next_one(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    dropped = table.target_state().identity
    leaving(table).drop("t", dropped)
    table.copy([changes.row(2, "a", "w")])
    for _ in range(2):
        leaving(table).release("public.t", "t", dropped)
    table.apply([changes.update(2, "b", "w")])
    assert table.rows() == [(2, "b", "w")]


def test_the_release_of_a_dropped_copy_spares_one_that_is_being_made(
    kit: TargetKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that was late."""
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    dropped = table.target_state().identity
    leaving(table).drop("t", dropped)
    leaving(table).release("public.t", "t", dropped)

    def release_amid(*arguments: Any) -> None:
        create_shadow_table(*arguments)
        leaving(table).release("public.t", "t", dropped)

    monkeypatch.setattr(database, "create_shadow_table", release_amid)
    table.copy([changes.row(2, "a", "w")])
    table.apply([changes.update(2, "b", "w")])
    assert table.rows() == [(2, "b", "w")]


def test_a_copy_is_taken_over_under_another_name(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.update(1, "b", "w")])
    before = table.target_state()
    taken = take_over(table, before, "renamed")
    now = state_of(table, "renamed")
    assert now.control is not None
    assert (now.control.replicator, now.control.window, now.control.nonce) == ("renamed", 1, taken.nonce)
    with pytest.raises(Fenced):
        take_over(table, before, "another")
    assert before.control is not None
    with pytest.raises(Fenced):
        table.job_tables().fence("t", before, before.control.fenced())
    rename(table, tmp_path, "renamed")
    table.apply([changes.update(1, "c", "w"), changes.insert(2, "d", "w")])
    assert table.rows() == [(1, "c", "w"), (2, "d", "w")]
    back = take_over(table, state_of(table, "renamed"), "hand")
    rename(table, tmp_path, "hand")
    assert control(table).nonce == back.nonce
    table.apply([changes.delete(2, "d", "w")])
    assert table.rows() == [(1, "c", "w")]


def rename(table: KitTable, folder: Path, name: str) -> None:
    """The change log goes with the name."""
    (folder / "staging" / table.definition.name).rename(folder / "staging" / name)
    table.definition = replace(table.definition, name=name)
    table.log = open_log(table.definition, ConnectionInfo())


def take_over(table: KitTable, before: TargetState, name: str) -> ControlRecord:
    target = target_of(table, name)
    assert isinstance(target, TakesOverTables)
    assert before.control is not None
    return target.take_over("t", before, before.control.fenced(replicator=name))

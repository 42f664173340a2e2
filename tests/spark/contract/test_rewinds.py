"""A target that keeps versions restores its table on condition; one that keeps none reports that it cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Blocked, Fenced
from airflow_cdc_provider.core.table.alterations import Alter, Alteration, altered
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.target import AltersTables
from airflow_cdc_provider.targets.versioned import VersionedTarget
from tests.spark.contract.control_records import control, fence
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

pytestmark = pytest.mark.jvm


def test_a_table_rewinds_to_the_first_version_of_a_cursor_and_applies_the_log_again(
    kit: TargetKit, tmp_path: Path
) -> None:
    """Another client damaged the table after that version. An attempt that read the table before the rewind is
    fenced."""
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.update(1, "b", "w")])
    kit.write("UPDATE {t} SET v = 'damaged'")
    table.land([changes.insert(2, "c", "w")])
    before = table.target_state()
    late, _ = table.staged()
    tables = table.job_tables()
    past = tables.version_at_or_before("public.t", "t", 1)
    nonce = fence(table, TableState.REWINDING).nonce
    announced = table.target_state()
    if past is None:
        assert not kit.keeps_versions and tables.control_at("public.t", "t", 1) is None
        with pytest.raises(Blocked, match="TGT024"):
            tables.restore_version("t", announced, 1)
        return
    assert past.control.window == 1 and tables.control_at("public.t", "t", past.version) == past.control
    with pytest.raises(Fenced):
        tables.restore_version("t", before, past.version)
    tables.restore_version("t", announced, past.version)
    assert table.rows() == [(1, "b", "w")]
    assert not table.target_state().restored and control(table).nonce == nonce
    state = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")
    record = replace(past.control, fence=control(table).fence + 1, state=state, nonce="ended")
    tables.fence("t", table.target_state(), record)
    assert table.merged(late).outcome is Outcome.FENCED
    assert table.rows() == [(1, "b", "w")] and control(table).window == 1
    job, _ = table.staged()
    assert table.merged(job).outcome is Outcome.DONE
    assert table.rows() == [(1, "b", "w"), (2, "c", "w")]


@pytest.mark.nightly
@pytest.mark.parametrize("by_others", [False, True])
def test_a_table_goes_back_beyond_altered_columns_and_has_them_altered_again(
    kit: TargetKit, tmp_path: Path, by_others: bool
) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    if not isinstance(table.job_tables(), VersionedTarget):
        pytest.skip("a backup has the columns that belong to its rows")
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.apply([changes.update(1, "b", "w")])
    first, version = control(table), kit.version()
    rename_and_drop(table)
    if by_others:
        kit.restore(version)
    else:
        fence(table, TableState.REWINDING)
        table.job_tables().restore_version("t", table.target_state(), version)
    table.schema = KEYED
    current = table.target_state()
    assert current.restored == by_others
    record = replace(first, fence=control(table).fence + 1, nonce="ended")
    table.job_tables().fence("t", current, record)
    assert table.rows() == [(1, "b", "w")]
    rename_and_drop(table)
    assert table.rows() == [(1, "b")]


def rename_and_drop(table: KitTable) -> None:
    current, tables, v = table.target_state(), table.job_tables(), KEYED.column("v")
    due = [Alteration(Alter.DROP, KEYED.column("w")), Alteration(Alter.RENAME, v, replace(v, name="renamed"))]
    assert current.control is not None and isinstance(tables, AltersTables)
    table.schema = altered(KEYED, due)
    tables.alter("t", current, current.control.fenced(schema=table.schema), due)

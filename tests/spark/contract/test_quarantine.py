"""Values that a column of the target cannot hold: quarantined, and released once they are corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnBadRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.spark.bad_records import decide
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import Row

pytestmark = pytest.mark.jvm

INT, TEXT, FLOAT = (LogicalType(kind) for kind in (Kind.INT32, Kind.TEXT, Kind.FLOAT64))
SCHEMA = TableSchema("public.t", (Column("id", INT, False), Column("v", TEXT), Column("f", FLOAT)), ("id",))
BEYOND = {"delta": {"f": "a lot"}, "postgres": {"v": "a\0b"}, "redshift": {"v": "é" * 32_768}}
"""A text that is no number; a value that has a type in Spark and none in the target; a text of a byte too many."""
LONGEST = {"postgres": "b", "redshift": "é" * 32_767 + "b"}


def row(key: int, **values: object) -> Row:
    return {"id": key, "v": "a", "f": 0.5, **values}


@pytest.mark.parametrize("kit", ["delta", "postgres"], indirect=True)
def test_unrepresentable_values_wait_and_are_released_once_although_the_answer_of_the_commit_is_lost(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, SCHEMA, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([row(1), row(2), row(3)])
    beyond = BEYOND[kit.kind]
    unfit = table.update(row(1, **beyond))
    far = table.insert(row(1 << 40))
    behind = table.update({"id": 1, "v": "c"}, complete=False)
    table.land([unfit, far, behind, table.update(row(2, v="b")), table.delete({"id": 3})])
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE, staged.problem
    table.merged(job)
    assert table.rows() == [(1, "a", 0.5), (2, "b", 0.5)]
    control = table.target_state().control
    assert control is not None and control.carry.counts == {"quarantined": 2, "parked": 1}
    reasons = [one.reason for one in table.log.quarantined_records(control.carry)]
    assert sorted(reason.split()[1] for reason in reasons) == sorted([*beyond, "id"])

    decide(table, unfit, DecisionKind.REPLAY, v="b", f=1.5)
    decide(table, far, DecisionKind.DISCARD)
    job, _ = table.staged()
    with kit.lose(reply=True):
        assert table.merged(job).outcome is Outcome.DONE
    assert table.merged(job).outcome is Outcome.FENCED
    assert table.rows() == [(1, "c", 1.5), (2, "b", 0.5)]
    control = table.target_state().control
    assert control is not None and control.carry.counts == {}


@pytest.mark.nightly
@pytest.mark.parametrize("kit", sorted(LONGEST), indirect=True)
def test_a_value_that_only_the_target_refuses_waits(kit: TargetKit, tmp_path: Path) -> None:
    """All values are valid in Arrow and in Spark, so that no conversion fails."""
    table = KitTable(kit, tmp_path, SCHEMA, on_bad_record=OnBadRecord.QUARANTINE)
    table.copy([row(1), row(2)])
    longest = LONGEST[kit.kind]
    table.land([table.update(row(1, **BEYOND[kit.kind])), table.update(row(2, v=longest))])
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE, staged.problem
    assert table.merged(job).outcome is Outcome.DONE
    assert table.rows() == [(1, "a", 0.5), (2, longest, 0.5)]
    control = table.target_state().control
    assert control is not None and control.carry.counts == {"quarantined": 1}

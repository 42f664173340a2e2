"""Every commit has the id of the attempt that made it, and the documented queries find it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.steps import StepKind
from spark_jobs import merge
from tests.spark.contract.control_records import control
from tests.spark.contract.fold_cases import KEYED, KeyedChanges
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.contract.sql_kit import SqlKit

pytestmark = pytest.mark.jvm

ATTEMPT = "7d0c5f1b9a364e1f8f2d6c0b1e4a9357"
PAGE = Path(__file__).parents[3] / "docs/operations.md"
QUERIES = {
    "delta": "DESCRIBE HISTORY delta.`/data/lake/orders`",
    "iceberg": "SELECT committed_at, get_json_object(summary['cdc.record'], '$.attempt') "
    "FROM lake.cdc.orders.snapshots",
    "postgres": "SELECT record::json ->> 'attempt' FROM _cdc_control WHERE target_table = 'orders'",
    "mysql": "SELECT json_value(record, '$.attempt') FROM _cdc_control WHERE target_table = 'orders'",
}
"""As in the documentation, by target."""


def test_a_merge_leaves_the_id_of_its_attempt_in_the_target(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, KEYED)
    changes = KeyedChanges(table, 0)
    table.copy([changes.row(1, "a", "w")])
    table.land([changes.update(1, "b", "w")])
    staged, _ = table.staged()
    merge.run(table.job(StepKind.MERGE, (table.task(),), merge_of=staged.step.attempt, attempt=ATTEMPT))
    record = control(table)
    assert (record.attempt, record.owner) == (ATTEMPT, "tests")
    if kit.kind in QUERIES:
        assert QUERIES[kit.kind] in PAGE.read_text()
        assert [row for row in answers(kit, QUERIES[kit.kind]) if ATTEMPT in str(row)]


def answers(kit: TargetKit, query: str) -> list[tuple[Any, ...]]:
    """Of the documented query, for the table of the test."""
    query = query.replace("/data/lake/orders", str(getattr(kit, "path", ""))).replace("cdc.orders", "cdc.t")
    if isinstance(kit, SqlKit):
        return kit.execute(query.replace("'orders'", "'t'").replace("_cdc_control", kit.table("_cdc_control")))
    return [tuple(row) for row in kit.session.sql(query).collect()]

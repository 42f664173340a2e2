"""The merge of a table without a key: all rows that equal a staged delete go, and the staged copies are inserted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, OP, MergePlan
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.changes import Changes, added, all_removed, marks
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches
from airflow_cdc_provider.targets.delta.local_engine.log_replay import TableSnapshot, live_rows
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import column_order


def deleted_rows(staged: pa.Table, plan: MergePlan) -> pa.Table:
    return staged.filter(pc.equal(staged[OP], GONE)).select(plan.schema.names)


@dataclass(frozen=True)
class KeylessMerge:
    store: Store
    table: str
    snapshot: TableSnapshot
    staged: pa.Table
    plan: MergePlan

    def changes(self, matches: Sequence[KeyMatches]) -> Changes:
        if self.plan.truncated:
            deleted = live_rows(self.snapshot)
            removed = all_removed(self.snapshot)
        else:
            deleted = sum(len(match.positions) for match in matches)
            removed = list(marks(self.store, self.table, [(match, match.positions) for match in matches]))
        copies = self.staged.filter(pc.equal(self.staged[OP], COPY)).select(column_order(self.snapshot))
        actions = (*removed, *added(self.store, self.table, self.snapshot, copies))
        return Changes(actions, len(self.staged), len(copies), 0, deleted)

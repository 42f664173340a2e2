"""A scripted table on any target, read by another library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors.source_features import FetchesRows
from airflow_cdc_provider.core.spec.definition import OnBadRecord, OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import ScriptedTable


class KitTable(ScriptedTable):
    def __init__(
        self,
        kit: TargetKit,
        folder: Path,
        schema: TableSchema,
        on_delete: OnDelete = OnDelete.HARD,
        on_bad_record: OnBadRecord = OnBadRecord.STOP,
        source: FetchesRows | None = None,
        history: History = History.NONE,
    ) -> None:
        super().__init__(
            kit.session,
            folder,
            schema,
            on_delete,
            target=kit.target,
            secrets=kit.secrets,
            on_bad_record=on_bad_record,
            source=source,
            engine=kit.engine,
            history=history,
        )
        self.kit = kit

    def rows(self, *technical: str) -> list[tuple[Any, ...]]:
        found = self.kit.rows(*self.schema.names, *technical)
        return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])

    def row_count(self) -> int | None:
        """The count that the target reports."""
        return self.job_tables().row_count("t", self.target_state())

"""The columns of each window that a copy wants: without those that an operator has decided not to copy. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_cdc_provider.core.table.ignored_columns import Ignored, still_ignored, without_ignored
from airflow_cdc_provider.core.table.schema import TableSchema
from spark_jobs.batches.schema_evolution import WindowSchemas


class WantedColumns:
    """Takes the windows after the cursor in order. ``new``: those of ``ignored`` that the first records may lack."""

    def __init__(self, ignored: Ignored, new: Collection[str]) -> None:
        self._ignored = dict(ignored)
        self._unseen = set(new)
        self._first: Ignored = dict(ignored)
        self._after: dict[int, Ignored] = {}

    def of(self, window: WindowSchemas) -> WindowSchemas:
        """A column that disappears is not left out any more: the next one with its name is another one."""
        schemas = tuple(map(self._wanted, window.schemas))
        self._after[window.window] = dict(self._ignored)
        return replace(window, schemas=schemas)

    def ignored_after(self, window: int) -> Ignored:
        reached = [number for number in self._after if number <= window]
        return self._after[max(reached)] if reached else self._first

    def _wanted(self, schema: TableSchema) -> TableSchema:
        present = still_ignored(self._ignored, schema)
        self._unseen -= present.keys()
        self._ignored = {name: one for name, one in self._ignored.items() if name in present or name in self._unseen}
        return without_ignored(schema, self._ignored)

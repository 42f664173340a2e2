"""What the copies of one source table have of it before a window is read. The change log is the same for all copies, so
it is read by the needs of all of them."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, TableState

UNCOPIED = frozenset({TableState.PENDING, TableState.SNAPSHOTTING})
"""States in which the first copy may be running. A hole before its floor does not affect it."""


@dataclass(frozen=True)
class CopyView:
    """``copy``: its name. ``schema``: the columns of the source whose values it has; None if there is no copy yet."""

    copy: str
    state: TableState
    schema: TableSchema | None

    @property
    def uncopied(self) -> bool:
        return self.state in UNCOPIED

    @property
    def takes_changes(self) -> bool:
        return self.state in TAKES_CHANGES

    def lacks(self, column: str) -> bool:
        """Whether there is a copy, without this column."""
        return self.schema is not None and column not in self.schema.names

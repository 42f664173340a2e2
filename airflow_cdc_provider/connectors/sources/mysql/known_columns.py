"""Which columns a table's copy has at a place of the stream, and what statements do to them. Pure."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.sources.mysql.alterations import added_columns, unlogged_changes
from airflow_cdc_provider.connectors.sources.mysql.statements import Statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState

UNCOPIED = frozenset({TableState.PENDING, TableState.SNAPSHOTTING})
"""States in which the first copy may be under way. A hole before its floor means nothing to it."""


class KnownColumns:
    """Those of the target, and those that rows and statements of this window have shown. A column that was dropped in
    the window counts: the target still holds its values."""

    def __init__(self, task: TableTask) -> None:
        self._held = task.control.schema if task.control else None
        self._uncopied = task.state in UNCOPIED
        self._added: set[str] = set()

    def show(self, schema: TableSchema) -> None:
        """Rows of this schema follow."""
        before = self._held.columns if self._held else ()
        dropped = tuple(one for one in before if one.name not in schema.names)
        self._held = replace(schema, columns=(*schema.columns, *dropped))

    def alter(self, statement: Statement, strict: bool) -> list[str]:
        """What the statement may have changed without a row that says so, in words."""
        held = None if self._uncopied else self._held
        if held is None and not self._uncopied:
            return []
        reasons = list(unlogged_changes(statement.clauses, statement.ignoring, strict, held))
        self._added |= set(added_columns(statement.clauses))
        return reasons

    def unexplained(self, schema: TableSchema) -> frozenset[str]:
        """Columns of rows, in small letters, that neither the copy has nor a statement of this window has added."""
        if self._held is None:
            return frozenset()
        known = self._added | {name.lower() for name in self._held.names}
        return frozenset(name.lower() for name in schema.names) - known

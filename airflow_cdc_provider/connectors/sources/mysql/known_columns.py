"""The columns of a table's copy at a position of the stream, and the effect of statements on them. Pure."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.sources.mysql.alterations import added_columns, unlogged_changes
from airflow_cdc_provider.connectors.sources.mysql.statements import Statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState

UNCOPIED = frozenset({TableState.PENDING, TableState.SNAPSHOTTING})
"""States in which the first copy may be running. A hole before its floor does not affect it."""


class KnownColumns:
    """The columns of the target, and those of rows and statements of this window. Columns that were dropped within the
    window are included: the target still has their values."""

    def __init__(self, task: TableTask) -> None:
        self._schema = task.control.schema if task.control else None
        self._uncopied = task.state in UNCOPIED
        self._added: set[str] = set()

    def add_schema(self, schema: TableSchema) -> None:
        """Call it before rows of this schema."""
        before = self._schema.columns if self._schema else ()
        dropped = tuple(column for column in before if column.name not in schema.names)
        self._schema = replace(schema, columns=(*schema.columns, *dropped))

    def apply(self, statement: Statement, strict: bool) -> list[str]:
        """Descriptions of the unlogged changes that the statement may have made."""
        schema = None if self._uncopied else self._schema
        if schema is None and not self._uncopied:
            return []
        changes = list(unlogged_changes(statement.clauses, statement.ignoring, strict, schema))
        self._added |= set(added_columns(statement.clauses))
        return changes

    def unexplained(self, schema: TableSchema) -> frozenset[str]:
        """Columns of ``schema``, in lower case, that the copy lacks and no statement of this window added."""
        if self._schema is None:
            return frozenset()
        known = self._added | {name.lower() for name in self._schema.names}
        return frozenset(name.lower() for name in schema.names) - known

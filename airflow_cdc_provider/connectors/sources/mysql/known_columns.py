"""The columns of a copy at a position of the stream, and the effect of statements on them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airflow_cdc_provider.connectors.mysql_statements.alter_table import added_columns, renamed_columns
from airflow_cdc_provider.connectors.sources.mysql.alterations import unlogged_changes
from airflow_cdc_provider.connectors.sources.mysql.statements import Statement
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selected_columns import selects
from airflow_cdc_provider.core.table.column_ids import rename_columns
from airflow_cdc_provider.core.table.copy_view import CopyView
from airflow_cdc_provider.core.table.schema import TableSchema


class KnownColumns:
    """The columns of the target, and those of rows and statements of this window. Columns that were dropped within the
    window are included: the target still has their values."""

    def __init__(self, view: CopyView, rule: TableRule) -> None:
        self.view = view
        self._schema = view.schema
        self._last = self._schema
        self._rule = rule
        self._nullable = (
            {column.name for column in view.schema.columns if column.nullable} if view.schema else set[str]()
        )
        self._added: set[str] = set()

    def add_schema(self, schema: TableSchema) -> None:
        """Call it before rows of this schema. Its columns are those of the catalog now, which may say NOT NULL where
        the copy has NULL."""
        self._last = schema
        before = self._schema.columns if self._schema else ()
        dropped = tuple(column for column in before if column.name not in schema.names)
        columns = (replace(one, nullable=one.nullable or one.name in self._nullable) for one in schema.columns)
        self._schema = replace(schema, columns=(*columns, *dropped))

    def apply(self, statement: Statement, strict: bool) -> list[str]:
        """Descriptions of the unlogged changes that the statement may have made."""
        schema = None if self.view.uncopied else self._schema
        if schema is None and not self.view.uncopied:
            return []
        changes = list(unlogged_changes(statement.clauses, statement.ignoring, strict, schema))
        self._added |= set(added_columns(statement.clauses))
        return [*changes, *self._renamed_into_view(statement)]

    def renamed(self, statement: Statement) -> TableSchema | None:
        """The columns after a statement that renames some of them; None if it renames none that is copied. A renamed
        column has its earlier name as its id."""
        if self._schema is None or self._last is None or self.view.uncopied:
            return None
        names = {old.lower(): new for old, new in renamed_columns(statement.clauses)}
        if not names.keys() & {name.lower() for name in self._last.names}:
            return None
        self._schema, self._last = (_renamed(schema, names) for schema in (self._schema, self._last))
        return self._last

    def _renamed_into_view(self, statement: Statement) -> list[str]:
        """Columns that are not copied and get a name that would be copied: older rows have values in them."""
        known = {name.lower() for name in self._schema.names} if self._schema else set()
        return [
            f"column {old}, which is not copied, was renamed to {new}"
            for old, new in renamed_columns(statement.clauses)
            if self._schema and old.lower() not in known and selects(self._rule, new)
        ]

    def unexplained(self, schema: TableSchema) -> frozenset[str]:
        """Columns of ``schema``, in lower case, that the copy lacks and no statement of this window added."""
        if self._schema is None:
            return frozenset()
        known = self._added | {name.lower() for name in self._schema.names}
        return frozenset(name.lower() for name in schema.names) - known


class ColumnsOfCopies:
    """The known columns of all copies of a table, each by itself. ``task``: of the table."""

    def __init__(self, task: TableTask) -> None:
        self._copies = [KnownColumns(view, task.rule) for view in task.views]

    def add_schema(self, schema: TableSchema) -> None:
        for copy in self._copies:
            copy.add_schema(schema)

    def apply(self, statement: Statement, strict: bool) -> dict[str, tuple[str, ...]]:
        """Descriptions of the unlogged changes that the statement may have made → the copies that have them."""
        found = [(copy.view.copy, "; ".join(copy.apply(statement, strict))) for copy in self._copies]
        details = dict.fromkeys(detail for _, detail in found if detail)
        return {detail: tuple(name for name, own in found if own == detail) for detail in details}

    def renamed(self, statement: Statement, stopped: Collection[str]) -> TableSchema | None:
        """As ``KnownColumns.renamed``, of the first copy that has a renamed column. ``stopped``: copies that the
        statement stops."""
        schemas = [copy.renamed(statement) for copy in self._copies if copy.view.copy not in stopped]
        return next((schema for schema in schemas if schema), None)

    def unexplained(self, schema: TableSchema) -> frozenset[str]:
        return frozenset().union(*(copy.unexplained(schema) for copy in self._copies))


def _renamed(schema: TableSchema, names: Mapping[str, str]) -> TableSchema:
    """``names``: earlier name in lower case → new name."""
    return rename_columns(schema, {one: names[one.lower()] for one in schema.names if one.lower() in names})

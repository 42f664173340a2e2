"""The schema of a database. It does not change: a schema change makes a new one, and reads of earlier times use the
earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from airflow_cdc_provider.sandbox.spanner.errors import failed_precondition, not_found


@dataclass(frozen=True)
class SpannerColumn:
    """``type``: without length. ``length``: None for MAX, and for types without."""

    table: str
    name: str
    type: str
    length: int | None = None
    not_null: bool = False
    is_array: bool = False
    commit_timestamp: bool = False

    def element(self) -> SpannerColumn:
        return replace(self, is_array=False, not_null=False)


@dataclass(frozen=True)
class SpannerTable:
    """``number``: of the rows, which a rename leaves. ``checks``: names of constraints, and the column that must not be
    NULL by each. ``indexes`` are names only. ``grants``: privilege and role."""

    number: int
    name: str
    columns: tuple[SpannerColumn, ...]
    key: tuple[str, ...]
    checks: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[str, ...] = ()
    grants: tuple[tuple[str, str], ...] = ()

    def column(self, name: str) -> SpannerColumn:
        found = self._by_name.get(name.lower())
        if found is None:
            raise not_found(f"Column not found in table {self.name}: {name}")
        return found

    @cached_property
    def key_columns(self) -> list[SpannerColumn]:
        return [self.column(name) for name in self.key]

    @cached_property
    def required_columns(self) -> list[SpannerColumn]:
        return [column for column in self.columns if column.not_null]

    @cached_property
    def _by_name(self) -> Mapping[str, SpannerColumn]:
        return {column.name.lower(): column for column in self.columns}


@dataclass(frozen=True)
class Schema:
    """``views``: the table that each depends on."""

    tables: Mapping[str, SpannerTable] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    roles: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=lambda: {"database_dialect": "GOOGLE_STANDARD_SQL"})

    def table(self, name: str) -> SpannerTable:
        found = self.tables.get(name.lower())
        if found is None:
            raise not_found(f"Table not found: {name}")
        return found

    def has(self, name: str) -> bool:
        """Tables, views, indexes and constraints have one space of names."""
        names = {name for table in self.tables.values() for name in (*table.checks, *table.indexes)}
        return name.lower() in {*self.tables, *self.views, *(one.lower() for one in names)}

    def with_table(self, table: SpannerTable) -> Schema:
        return replace(self, tables={**self.tables, table.name.lower(): table})

    def without_table(self, name: str) -> Schema:
        return replace(self, tables={key: table for key, table in self.tables.items() if key != name.lower()})

    def require_no_view(self, table: str) -> None:
        views = [view for view, of in self.views.items() if of == table.lower()]
        if views:
            raise failed_precondition(f"Cannot change table {table}: it is referenced by view {views[0]}.")

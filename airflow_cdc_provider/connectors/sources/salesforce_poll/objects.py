"""A polled object of an org."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce_poll.options import SalesforcePollOptions
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.selection import matches
from airflow_cdc_provider.core.table.schema import Kind, TableSchema


def timestamp_column_of(described: ObjectSchema, options: SalesforcePollOptions) -> str:
    """The column with the time of the last change, empty if the object has none. Raises CheckFailed (SRC062) if the
    definition names another one that has no such time."""
    table, name = described.schema, named_timestamp(described, options)
    if name == described.modstamp:
        return name
    if name not in table.names:
        raise CheckFailed(_no_timestamp_column(table.table, name, "no such field, or one that is hidden from the user"))
    column = table.column(name)
    if column.type.kind is not Kind.TIMESTAMPTZ:
        raise CheckFailed(_no_timestamp_column(table.table, name, f"a field of type {column.native}"))
    if name in described.unordered:
        raise CheckFailed(_no_timestamp_column(table.table, name, "a field that no query can filter and sort by"))
    return name


def named_timestamp(described: ObjectSchema, options: SalesforcePollOptions) -> str:
    """The column by the definition or the object, empty if there is none. It may be refused."""
    return options.timestamp_columns.get(described.schema.table) or described.modstamp


@dataclass(frozen=True)
class PolledObject:
    """``schema`` has the selected columns; ``timestamp_column`` has the time of the last change."""

    org: Org
    described: ObjectSchema
    schema: TableSchema
    timestamp_column: str

    @property
    def table(self) -> str:
        return self.schema.table

    @property
    def timestamp_nullable(self) -> bool:
        return self.described.schema.column(self.timestamp_column).nullable

    @property
    def query_schema(self) -> TableSchema:
        """The selected columns, and those that every query requires."""
        names = [ID, self.timestamp_column, *([IS_DELETED] if IS_DELETED in self.described.schema.names else [])]
        more = [self.described.schema.column(name) for name in names if name not in self.schema.names]
        return replace(self.schema, columns=(*self.schema.columns, *more))


def _no_timestamp_column(table: str, name: str, found: str) -> Problem:
    return Problem(
        "SRC062",
        f"the timestamp column of {table} cannot be polled",
        where=f"{table}.{name}",
        found=found,
        allowed="a datetime field, by its API name, that every change sets and that the user can see",
        do="grant read access to the field, or remove the object from `timestamp_columns`: then the best one is chosen",
        data="nothing of the table was read",
    )


def matching_objects(summaries: Iterable[Mapping[str, Any]], patterns: Sequence[str]) -> list[str]:
    """Objects whose records can be queried and whose deletes Salesforce lists; without patterns, of those the ones that
    users create records of: system objects have no triggers."""
    candidates = [one for one in summaries if one.get("queryable") and one.get("replicateable")]
    if patterns:
        chosen = [one for one in candidates if any(matches(pattern, one["name"]) for pattern in patterns)]
    else:
        chosen = [one for one in candidates if one.get("triggerable") and one.get("createable")]
    return sorted(str(one["name"]) for one in chosen)

"""A polled object of an org."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.core.spec.selection import matches
from airflow_cdc_provider.core.table.schema import TableSchema


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


def matching_objects(summaries: Iterable[Mapping[str, Any]], patterns: Sequence[str]) -> list[str]:
    """Objects whose records can be queried and whose deletes Salesforce lists; without patterns, of those the ones that
    users create records of: system objects have no triggers."""
    candidates = [one for one in summaries if one.get("queryable") and one.get("replicateable")]
    if patterns:
        chosen = [one for one in candidates if any(matches(pattern, one["name"]) for pattern in patterns)]
    else:
        chosen = [one for one in candidates if one.get("triggerable") and one.get("createable")]
    return sorted(str(one["name"]) for one in chosen)

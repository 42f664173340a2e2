"""A polled object of an org."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
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

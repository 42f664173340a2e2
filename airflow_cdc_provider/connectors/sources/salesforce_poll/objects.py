"""An object of an org as it is polled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class Object:
    """``schema`` has the selected columns; ``stamp`` is the column that tells of changes."""

    org: Org
    described: ObjectSchema
    schema: TableSchema
    stamp: str

    @property
    def table(self) -> str:
        return self.schema.table

    @property
    def sweeps(self) -> bool:
        return self.described.schema.column(self.stamp).nullable

    @property
    def wide(self) -> TableSchema:
        """The selected columns, and those that tell what became of the record, and when."""
        names = [ID, self.stamp, *([IS_DELETED] if IS_DELETED in self.described.schema.names else [])]
        more = [self.described.schema.column(one) for one in names if one not in self.schema.names]
        return replace(self.schema, columns=(*self.schema.columns, *more))

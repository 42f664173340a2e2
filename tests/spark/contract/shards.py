"""Two source tables in one target table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.schema import Column, Origin, TableSchema
from tests.spark.contract.fold_cases import INT, TEXT
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit

SHARD = Column("shard", TEXT, nullable=False, origin=Origin("", TEXT))
ID = Column("id", INT, nullable=False)
Row = dict[str, Any]


class Shard(KitTable):
    """The source table ``name``, whose rows have ``value`` in ``shard``, or its name."""

    def __init__(
        self,
        kit: TargetKit,
        folder: Path,
        name: str,
        *columns: Column,
        on_delete: OnDelete = OnDelete.HARD,
        value: str = "",
    ) -> None:
        self.name, self.value = name, value or name
        self.columns = ("shard", "id", *(column.name for column in columns))
        schema = TableSchema(name, (SHARD, ID, *columns), ("shard", "id"))
        super().__init__(kit, folder / name, schema, on_delete)
        self.rule = replace(self.rule, shard_column="shard", shard_value=self.value)
        self.definition = replace(self.definition, tables=(self.rule,))

    def row(self, key: int, *values: Any) -> Row:
        return dict(zip(self.columns, (self.value, key, *values), strict=False))

    def own(self, *technical: str) -> list[tuple[Any, ...]]:
        return [row[1:] for row in self.rows(*technical) if row[0] == self.value]


def two(kit: TargetKit, folder: Path, *columns: Column, on_delete: OnDelete = OnDelete.HARD) -> tuple[Shard, Shard]:
    """Both with the keys 1 and 2."""
    tables = [Shard(kit, folder, name, *columns or (Column("v", TEXT),), on_delete=on_delete) for name in ("a", "b")]
    for table in tables:
        table.copy([table.row(1, "x"), table.row(2, "y")])
    return tables[0], tables[1]

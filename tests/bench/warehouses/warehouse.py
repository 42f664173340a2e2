"""A warehouse, or its stand-in, with two tables: the product merges into ``items``, and a job as an engineer writes it
by hand, with the vendor's own client, into a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Target

TYPES = {
    "id": "BIGINT",
    "customer_id": "BIGINT",
    "status": "STRING",
    "total": "DECIMAL(12, 2)",
    "tax": "DECIMAL(12, 2)",
    "rate": "DOUBLE",
    "payload": "STRING",
    "note": "STRING",
    "active": "BOOLEAN",
    "placed_at": "TIMESTAMP",
    "updated_at": "TIMESTAMP_NTZ",
    "ship_on": "DATE",
}
"""The columns of ``items``, with Spark's types. ``id`` is the key."""

COLUMNS = tuple(TYPES)

OP = "_cdc_op"
"""The column of the staged rows that is ``D`` in a row that is deleted."""

SUMS = "count(*), sum(id), sum(customer_id), sum(total), sum(tax), count(distinct note), count(payload), max(placed_at)"


class Warehouse(Protocol):
    """``stage``: the connection of a bucket."""

    target: Target
    connection: ConnectionInfo
    stage: ConnectionInfo

    def copy(self, name: str) -> None:
        """A table of this name with the columns and the rows of ``items``."""

    def by_hand(self, name: str, files: Sequence[Path]) -> None:
        """Load the rows of the Parquet files and merge them into the table of this name."""

    def sums(self, name: str) -> list[str]:
        """``SUMS`` of a table, as texts."""


def merge(target: str, staged: str, columns: Sequence[str] = COLUMNS) -> str:
    """The MERGE of all rows, in standard SQL."""
    sets = ", ".join(f"{name} = s.{name}" for name in columns if name != "id")
    values = ", ".join(f"s.{name}" for name in columns)
    return (
        f"MERGE INTO {target} t USING {staged} s ON t.id = s.id WHEN MATCHED AND s.{OP} = 'D' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND s.{OP} <> 'D' THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def texts(row: Sequence[object]) -> list[str]:
    """Times to the second: systems write time zones differently, and zeros at the end of a decimal."""
    return [f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)[:19] for value in row]

"""A Delta table that Spark made and the driver merges into, and a model of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.merge_plan import DELETED, GONE, KNOWN, LIVE, OP, ORDER, PUT, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.delta.ddl import table_properties
from airflow_cdc_provider.targets.delta.local_engine.commit import CommitLabel, PreparedCommit
from airflow_cdc_provider.targets.delta.local_engine.merge import prepare_merge
from tests.delta_tables import read

Row = dict[str, Any]
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)

KINDS: dict[str, tuple[LogicalType, pa.DataType, Callable[[int], Any]]] = {
    "number": (LogicalType(Kind.INT64), pa.int64(), lambda n: n - 50),
    "short": (LogicalType(Kind.INT16), pa.int16(), lambda n: n),
    "text": (LogicalType(Kind.TEXT), pa.string(), lambda n: "é€𝄞" * 15 + f"{n % 7}" + "\U0010ffff" * (n % 3) + f"{n}"),
    "day": (LogicalType(Kind.DATE), pa.date32(), lambda n: date(1969, 12, 1) + timedelta(n)),
    "moment": (
        LogicalType(Kind.TIMESTAMPTZ), pa.timestamp("us", "UTC"), lambda n: MOMENT + timedelta(microseconds=n * 999),
    ),
    "price": (LogicalType(Kind.DECIMAL, 20, 2), pa.decimal128(20, 2), lambda n: Decimal(n * 10**15 + n) / 100),
    "bytes": (LogicalType(Kind.BYTES), pa.binary(), lambda n: bytes([n % 256, n // 256])),
    "flag": (LogicalType(Kind.BOOLEAN), pa.bool_(), lambda n: n % 2 == 0),
    "maybe": (LogicalType(Kind.INT32), pa.int32(), lambda n: None if n % 5 == 0 else n % 5),
}  # fmt: skip
VALUES: dict[str, tuple[LogicalType, pa.DataType, list[Any]]] = {
    "v": (LogicalType(Kind.TEXT), pa.string(), [None, "", "a" * 40]),
    "f": (LogicalType(Kind.FLOAT64), pa.float64(), [None, 1.5, float("inf")]),
    "at": (LogicalType(Kind.TIMESTAMP), pa.timestamp("us"), [None, datetime(1, 1, 1), datetime.max]),
}  # fmt: skip


@dataclass
class MergedTable:
    """A table that Spark made, and a model of it: rows by their key."""

    spark: SparkSession
    folder: Path
    key: tuple[str, ...]
    soft: bool
    model: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    token: int = 0

    def __post_init__(self) -> None:
        kinds = {name: KINDS[name][:2] for name in self.key} | {name: column[:2] for name, column in VALUES.items()}
        self.schema = TableSchema("t", tuple(Column(name, kind) for name, (kind, _) in kinds.items()), self.key)
        self.columns = pa.schema([*((name, kind) for name, (_, kind) in kinds.items()), (ORDER, pa.string())])
        self.plan = MergePlan(self.schema, OnDelete.SOFT if self.soft else OnDelete.HARD)
        self.store = LocalStore(str(self.folder))
        self.path = str(self.folder / "t")

    def create(self, rows: list[Row], **properties: str) -> None:
        columns = self.columns.append(pa.field(DELETED, pa.bool_())) if self.soft else self.columns
        frame = self.spark.createDataFrame(pa.Table.from_pylist(rows, columns)).repartition(3)
        frame = frame.withColumn("at", frame["at"].cast("timestamp_ntz"))
        options = table_properties(self.schema, self.key) | {
            f"delta.{name}": value for name, value in properties.items()
        }
        frame.write.format("delta").options(**options).save(self.path)
        self.model = {self.key_of(row): row for row in rows}

    def row(self, random: Random, number: int, order: int) -> Row:
        key = {name: KINDS[name][2](number) for name in self.key}
        values = {name: random.choice(column[2]) for name, column in VALUES.items()}
        return {**key, **values, ORDER: f"{order:06d}", **({DELETED: False} if self.soft else {})}

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def staged(self, random: Random, numbers: list[int], below: int, partial: bool = False) -> pa.Table:
        rows = [
            {**self.row(random, number, random.randrange(below)), OP: random.choice([LIVE, LIVE, PUT, GONE])}
            for number in numbers
        ]
        columns = self.columns.append(pa.field(OP, pa.string()))
        if partial:
            rows = [self.partial(random, row) for row in rows]
            columns = columns.append(pa.field(KNOWN, pa.list_(pa.string())))
        return pa.Table.from_pylist(rows, columns)

    def partial(self, random: Random, row: Row) -> Row:
        """The row with some unknown values; a row that must exist and does not has all values."""
        old = self.model.get(self.key_of(row))
        there = old is not None and not old.get(DELETED)
        names = [name for name in VALUES if random.random() < 0.5]
        if random.random() < 0.3 or (row[OP] == LIVE and not there):
            return {**row, KNOWN: None}
        unknown = {name: None for name in VALUES if name not in names}
        return {**row, **unknown, KNOWN: [*self.key, *names] if row[OP] != GONE or self.soft else []}

    def prepared(self, staged: pa.Table, **changes: Any) -> PreparedCommit:
        self.token += 1
        plan = replace(self.plan, **changes)
        return prepare_merge(self.store, "t", staged, plan, CommitLabel("app", self.token, "{}"))

    def merge(self, staged: pa.Table, not_older: bool = False, truncated: bool = False) -> None:
        partial = KNOWN in staged.column_names
        prepared = self.prepared(staged, not_older=not_older, partial=partial, truncated=truncated)
        assert prepared.commit()
        before = set(self.model)
        counts = self.expect(staged, not_older)
        if truncated:
            kept = {self.key_of(row) for row in staged.to_pylist() if row[OP] != GONE}
            self.model = {key: row for key, row in self.model.items() if key in kept}
            counts = (len(kept - before), len(kept & before), len(before - kept))
        assert counts == (prepared.inserted, prepared.updated, prepared.deleted)

    def expect(self, staged: pa.Table, not_older: bool) -> tuple[int, int, int]:
        """Applies the plan to the model."""
        inserted = updated = deleted = 0
        for row in staged.to_pylist():
            op, key, old = row.pop(OP), self.key_of(row), self.model.get(self.key_of(row))
            known = row.pop(KNOWN, None if op != GONE else [])
            new = row | ({DELETED: False} if self.soft else {})
            of_old = {} if old is None or (op != GONE and old.get(DELETED)) else old
            row = new if known is None else {**new, **{name: of_old.get(name) for name in VALUES if name not in known}}
            if old is None:
                inserted += op != GONE
                self.model |= {key: row} if op != GONE else {}
            elif row[ORDER] > old[ORDER] or (not_older and row[ORDER] == old[ORDER]):
                updated += op != GONE or self.soft
                deleted += op == GONE and not self.soft
                if op != GONE:
                    self.model[key] = row
                elif self.soft:
                    self.model[key] = {**row, DELETED: True}
                else:
                    del self.model[key]
        return inserted, updated, deleted

    def check_read_by_deltalake(self) -> None:
        """The rows that deltalake reads are those of the model."""
        rows = read(DeltaTable(self.path)).to_pylist()
        assert len(rows) == len(self.model)
        assert {self.key_of(row): row for row in rows} == self.model

    def frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)

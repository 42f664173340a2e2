"""Change records of an earlier schema of a table as those of a later one: renamed columns, and values of wider types.

The target is altered before the window in which the schema changes, so all records of the window are read as rows of
the later schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import MAX_PREC, Context, Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from airflow_cdc_provider.core.table.floats import as_float32
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, SchemaChange, compare, same_columns
from spark_jobs.folds.json_members import elements, image_of, members

IMAGES, KEYS = ("before", "after"), ("key_before", "key")
Types = tuple[LogicalType, LogicalType]
NULL = "null"
EXACT = Context(prec=MAX_PREC)
"""Decimals of the source may have more digits than Python's default context keeps."""


@dataclass(frozen=True)
class Conversion:
    """``names``: earlier → later name of each renamed column. ``former``: dropped columns whose names added ones have.
    ``types``: by later name, the earlier and the later type
    of each column with another text for the same value. ``key``: the columns of the later key. A conversion may be
    repeated: a tombstone keeps its schema id."""

    names: Mapping[str, str] = field(default_factory=dict)
    former: frozenset[str] = frozenset()
    types: Mapping[str, Types] = field(default_factory=dict)
    key: tuple[str, ...] = ()

    def image(self, image: str) -> str:
        found = dict(members(image))
        taken = {self.names[name] for name in found.keys() & self.names.keys()}
        gone = self.former | (taken - self.names.keys())
        named = ((self.names.get(name, name), value) for name, value in found.items() if name not in gone)
        return image_of({name: self._value(name, value) for name, value in named})

    def key_text(self, key: str) -> str:
        return f"[{','.join(map(self._value, self.key, elements(key)))}]"

    @property
    def changes_keys(self) -> bool:
        return not self.types.keys().isdisjoint(self.key)

    def _value(self, name: str, value: str) -> str:
        return value if name not in self.types or value == NULL else _wider(*self.types[name])(value)


def conversions(
    schemas: Mapping[str, TableSchema], later: TableSchema, renamed: Callable[[str], Mapping[str, str]]
) -> dict[str, Conversion]:
    """By the ids of the schemas that need one. ``renamed``: what operators have decided, by such an id."""
    found = ((schema_id, _conversion(earlier, later, renamed(schema_id))) for schema_id, earlier in schemas.items())
    return {schema_id: one for schema_id, one in found if one.names or one.former or one.types}


def _conversion(earlier: TableSchema, later: TableSchema, renamed: Mapping[str, str]) -> Conversion:
    names, types = dict[str, str](), dict[str, Types]()
    changes = compare(earlier, later, renamed or None)
    for change in changes:
        before, after = change.before, change.after
        if before is None or after is None:
            continue
        if change.kind is ChangeKind.RENAME:
            names[before.name] = after.name
        elif change.kind is ChangeKind.WIDEN and _has_other_texts(before.type, after.type):
            types[after.name] = before.type, after.type
    return Conversion(names, former_columns(changes), types, later.key)


def under_later_names(earlier: TableSchema, later: TableSchema, renamed: Mapping[str, str]) -> TableSchema:
    """``earlier`` with those of its columns that ``later`` has, under their names there: converted rows of it lack the
    others. ``renamed``: as for ``conversions``."""
    names = same_columns(earlier.columns, later.columns, renamed or None)
    columns = (replace(column, name=names[column.name]) for column in earlier.columns if column.name in names)
    return replace(earlier, columns=tuple(columns))


def former_columns(changes: Sequence[SchemaChange]) -> frozenset[str]:
    """Names of dropped columns that added ones have."""
    dropped = {one.before.name for one in changes if one.kind is ChangeKind.DROP_COLUMN and one.before}
    added = {one.after.name for one in changes if one.kind is ChangeKind.ADD_COLUMN and one.after}
    return frozenset(dropped & added)


def converted(records: pa.Table, by_schema: Mapping[str, Conversion]) -> pa.Table:
    """``records``: with the columns of change records, or those that a fold reads."""
    schema_ids = records["schema_id"]
    for schema_id, conversion in by_schema.items():
        earlier = pc.equal(schema_ids, schema_id)
        if not pc.any(earlier).as_py():
            continue
        for name in IMAGES:
            records = replaced(records, name, earlier, conversion.image)
        for name in KEYS if conversion.changes_keys else ():
            records = replaced(records, name, earlier, conversion.key_text)
    return records


def converted_frame(records: DataFrame, by_schema: Mapping[str, Conversion]) -> DataFrame:
    return in_batches(records, partial(converted, by_schema=by_schema)) if by_schema else records


def in_batches(records: DataFrame, convert: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """``convert`` keeps the columns."""
    return records.mapInArrow(partial(_convert_batches, convert), records.schema)


def _convert_batches(
    convert: Callable[[pa.Table], pa.Table], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from convert(pa.Table.from_batches([batch])).to_batches()


def replaced(records: pa.Table, name: str, rows: pa.ChunkedArray, convert: Callable[[str], str]) -> pa.Table:
    """The table with other texts in these rows of a column; NULL stays."""
    column = records[name]
    texts = [None if text is None else convert(text) for text in column.filter(rows).to_pylist()]
    values = pc.replace_with_mask(column.combine_chunks(), rows.combine_chunks(), pa.array(texts, column.type))
    return records.set_column(records.column_names.index(name), records.field(name), values)


def _has_other_texts(before: LogicalType, after: LogicalType) -> bool:
    if before.kind is Kind.DECIMAL:
        return before.scale != after.scale
    return before.kind in (Kind.FLOAT32, Kind.DATE)


def _wider(before: LogicalType, after: LogicalType) -> Callable[[str], str]:
    if before.kind is Kind.DECIMAL:
        return partial(_decimal, -(after.scale or 0))
    return _double if before.kind is Kind.FLOAT32 else _midnight


def _decimal(exponent: int, value: str) -> str:
    number = Decimal(value.strip('"'))
    if not number.is_finite():
        return value
    return f'"{number.quantize(Decimal(1).scaleb(exponent), context=EXACT):f}"'


def _double(value: str) -> str:
    """The same number, with as many digits as a double shows."""
    if value.startswith('"'):
        return value  # NaN and infinities
    return json.dumps(as_float32(float(value)))


def _midnight(value: str) -> str:
    return value if "T" in value else f'{value[:-1]}T00:00:00"'

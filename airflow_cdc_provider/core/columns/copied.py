"""The columns of a copy, derived from the columns of the source by the rule of the table. Pure.

A column of the source is cast, then hashed, masked or truncated, then renamed. A value that cannot be cast is NULL with
``on_unrepresentable: set_null``, and its text, hashed or masked like the value, is in an additional column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from airflow_cdc_provider.core.columns.casts import CannotCast, can_cast, cast_function
from airflow_cdc_provider.core.columns.functions import HASH_DIGITS, Convert, hash_function, mask_function
from airflow_cdc_provider.core.columns.values import from_json, to_json, value_text
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.spec.columns import AddedColumn, Metadata
from airflow_cdc_provider.core.spec.definition import OnUnrepresentable, TableRule
from airflow_cdc_provider.core.table.schema import TEXT_OF, Column, Kind, LogicalType, Origin, TableSchema, parse_type

TEXT = LogicalType(Kind.TEXT)
METADATA_TYPES = {
    Metadata.SOURCE_TABLE: TEXT,
    Metadata.COMMIT_TIME: LogicalType(Kind.TIMESTAMPTZ),
    Metadata.OPERATION: TEXT,
}
CONSTANT_TYPES: dict[type, Kind] = {str: Kind.TEXT, bool: Kind.BOOLEAN, int: Kind.INT64, float: Kind.FLOAT64}


def changes_columns(rule: TableRule) -> bool:
    """Whether the copy has other names or values than the selected columns of the source."""
    columns = rule.columns
    return bool(columns.hidden or columns.converted or columns.rename or columns.add or rule.shard_column)


@dataclass(frozen=True)
class CopiedColumn:
    """``column``: of the copy. ``source``: None for a column that the definition adds (``added``). ``convert``: of
    values that are not NULL; None if they are copied unchanged. ``failed``: for the text column of a column that is
    cast."""

    column: Column
    source: Column | None = None
    convert: Convert | None = None
    failed: FailedCast | None = None
    added: AddedColumn | None = None


@dataclass(frozen=True)
class FailedCast:
    """``text``: NULL for a value of ``column`` that can be cast, its text for others."""

    column: Column
    text: Convert


@dataclass(frozen=True)
class CopiedColumns:
    """The columns of a copy whose source has ``schema``, as selected by the ``rule``. ``key``: of hashes. ``known``:
    columns of the copy as they are known from elsewhere: the source's schema of an earlier time may lack the initial
    values of its columns."""

    rule: TableRule
    schema: TableSchema
    key: bytes = field(default=b"", repr=False)
    known: tuple[Column, ...] = ()

    @cached_property
    def columns(self) -> tuple[CopiedColumn, ...]:
        copied = [one for column in self.schema.columns for one in self._of_source(column)]
        shard = [_shard(self.rule)] if self.rule.shard_column else []
        return (*shard, *copied, *map(_added, self.rule.columns.add))

    @cached_property
    def copied_schema(self) -> TableSchema:
        columns = tuple(one.column for one in self.columns)
        key = names_in_copy(self.rule, self.schema.key)
        shard = [self.rule.shard_column] if self.rule.shard_column and key else []
        return replace(self.schema, columns=columns, key=(*shard, *key))

    def _of_source(self, column: Column) -> Iterator[CopiedColumn]:
        name = column.text_of or column.name
        copied = copied_name(self.rule, name)
        if column.text_of:
            made = self._copied(column, f"{TEXT_OF}{copied}", TEXT, self._hiding(name, Kind.TEXT))
            yield replace(made, failed=self._failed_cast(self.schema.column(name)))
            return
        cast = self._cast_type(column)
        kind = cast or column.type
        hide = self._hiding(name, kind.kind)
        convert = _then(self._casting(column, cast), hide) if cast else hide
        yield self._copied(column, copied, TEXT if name in self._as_text else kind, convert)
        failed = None if self.schema.has_text_of(name) else self._failed_cast(column)
        if failed is not None:
            yield CopiedColumn(Column(f"{TEXT_OF}{copied}", TEXT, origin=Origin("", TEXT)), failed=failed)

    @property
    def _as_text(self) -> Collection[str]:
        return {*self.rule.columns.hash, *self.rule.columns.mask}

    def _cast_type(self, column: Column) -> LogicalType | None:
        """None if the column is not cast, or cannot be, which is a problem of the definition."""
        cast = self.rule.columns.converted.get(column.name)
        kind = parse_type(cast) if cast else None
        return kind if kind and can_cast(column.type.kind, kind.kind) else None

    def _sets_null(self, name: str) -> bool:
        return self.rule.on_unrepresentable is OnUnrepresentable.SET_NULL and name not in self.schema.key

    def _casting(self, column: Column, kind: LogicalType) -> Convert:
        cast = cast_function(column.type.kind, kind)
        return _none_if_failed(cast) if self._sets_null(column.name) else cast

    def _failed_cast(self, column: Column) -> FailedCast | None:
        kind = self._cast_type(column)
        if kind is None or not self._sets_null(column.name):
            return None
        cast = cast_function(column.type.kind, kind)
        text = _then(value_text(column.type.kind), self._hiding(column.name, Kind.TEXT))
        return FailedCast(column, _if_failed(cast, text))

    def _hiding(self, name: str, kind: Kind) -> Convert | None:
        settings = self.rule.columns
        if name in settings.hash:
            return hash_function(kind, self.key)
        if name in settings.mask:
            return mask_function(kind, settings.mask[name])
        if name in settings.truncate:
            return _truncation(settings.truncate[name])
        return None

    def _copied(self, column: Column, name: str, kind: LogicalType, convert: Convert | None) -> CopiedColumn:
        if convert is None and name == column.name:
            return CopiedColumn(column, column)
        hidden = (column.text_of or column.name) in self.rule.columns.hidden
        origin = Origin(column.name, column.type, column.native, convert is not None, hidden)
        if convert is None:
            return CopiedColumn(replace(column, name=name, origin=origin), column)
        nullable = column.nullable or self._sets_null(column.name)
        native = self._native(column.text_of or column.name)
        copied = Column(name, kind, nullable, native, id=column.id, origin=origin)
        return CopiedColumn(replace(copied, initial=self._initial(column, copied, convert)), column, convert)

    def _native(self, name: str) -> str:
        settings = self.rule.columns
        length = HASH_DIGITS if name in settings.hash else settings.truncate.get(name)
        return f"varchar({length})" if length else ""

    def _initial(self, column: Column, copied: Column, convert: Convert) -> str | None:
        if column.initial is None:
            return next((known.initial for known in self.known if _same_origin(known, copied)), None)
        try:
            return converted_json(column.type, copied.type, convert)(column.initial)
        except CannotCast:
            return None


def copied_name(rule: TableRule, name: str) -> str:
    """The name in the copy of a column of the source."""
    return rule.columns.rename.get(name, name)


def names_in_copy(rule: TableRule, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(copied_name(rule, name) for name in names)


def without_renamed(rule: TableRule, schema: TableSchema, known: Collection[str]) -> TableSchema:
    """``schema``, of the source, without new columns if a hidden column is missing: it may have been renamed, and its
    values would be copied in clear. ``known``: the columns of the source when the run was planned."""
    hidden = rule.columns.hidden & set(known)
    if hidden <= set(schema.names):
        return schema
    columns = tuple(column for column in schema.columns if (column.text_of or column.name) in known)
    return replace(schema, columns=columns)


def source_schema(schema: TableSchema) -> TableSchema:
    """The source's schema that a copy's schema was derived from, without the initial values of converted columns."""
    columns = [source_column(column) for column in schema.columns if column.origin is None or column.origin.name]
    names = {column.name: column.origin.name for column in schema.columns if column.origin is not None}
    key = tuple(filter(None, (names.get(name, name) for name in schema.key)))
    return replace(schema, columns=tuple(columns), key=key)


def converted_json(source: LogicalType, target: LogicalType, convert: Convert) -> Callable[[str], str]:
    """A conversion of canonical JSON texts. It raises CannotCast."""
    read, write = from_json(source.kind), to_json(target)

    def converted(text: str) -> str:
        value = json.loads(text)
        result = None if value is None else convert(read(value))
        return canonical(None if result is None else write(result))

    return converted


def constant_type(value: object) -> LogicalType:
    return LogicalType(CONSTANT_TYPES[type(value)])


def source_column(column: Column) -> Column:
    """The column of the source that a column of a copy was derived from. The source must have one."""
    origin = column.origin
    if origin is None:
        return column
    initial = None if origin.converted else column.initial
    return Column(origin.name, origin.type, column.nullable, origin.native, initial, column.id)


def _added(added: AddedColumn) -> CopiedColumn:
    kind = METADATA_TYPES[added.metadata] if added.metadata else constant_type(added.value)
    return CopiedColumn(Column(added.name, kind, origin=Origin("", kind)), added=added)


def _shard(rule: TableRule) -> CopiedColumn:
    column = Column(rule.shard_column, TEXT, nullable=False, origin=Origin("", TEXT))
    return CopiedColumn(column, added=AddedColumn(rule.shard_column, rule.shard_value))


def _same_origin(known: Column, copied: Column) -> bool:
    return (known.name, known.type, known.origin) == (copied.name, copied.type, copied.origin)


def _then(first: Convert, second: Convert | None) -> Convert:
    if second is None:
        return first

    def both(value: Any) -> Any:
        result = first(value)
        return None if result is None else second(result)

    return both


def _none_if_failed(cast: Convert) -> Convert:
    def cast_or_none(value: Any) -> Any:
        try:
            return cast(value)
        except CannotCast:
            return None

    return cast_or_none


def _if_failed(cast: Convert, text: Convert) -> Convert:
    def text_of_failed(value: Any) -> Any:
        try:
            cast(value)
        except CannotCast:
            return text(value)
        return None

    return text_of_failed


def _truncation(length: int) -> Convert:
    return lambda value: value[:length]


def source_type(column: Column) -> str:
    """The type of the column that a column of a copy was derived from, in the source's words; empty for a column that
    the source does not have."""
    return source_column(column).type_text if column.source_name else ""

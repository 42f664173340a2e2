"""The images of a changed row, from the cells of a change table. Pure.

``text``, ``ntext`` and ``image`` are NULL in the row of a delete and in the row before an update. A ``max`` type,
``xml`` and the spatial types are NULL in the rows of an update that does not change them. Such a NULL means unknown.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from airflow_cdc_provider.connectors.rows import DecodedPart, Row
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_writer
from airflow_cdc_provider.connectors.sources.sqlserver.types import NEVER_IN_BEFORE, SqlColumn, logical_type
from airflow_cdc_provider.connectors.sources.sqlserver.values import CUT, cell_reader, is_cut, source_reader
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.filters import matches
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class Absent(Enum):
    ABSENT = 0


ABSENT: Final = Absent.ABSENT
"""A cell whose value is unknown."""

Cells = Sequence[Any]
DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4
"""Values of ``__$operation``."""

UNREADABLE = (ValueError, ArithmeticError, TypeError, LookupError)
"""What converting a cell may raise."""


class NotKnown(ValueError):
    """A column of the row filter or of the key is unknown."""


class RowChange(NamedTuple):
    """The cells before and after a change, None where there is no row."""

    old: Cells | None
    new: Cells | None


def row_change(operation: int, columns: Sequence[SqlColumn], first: Cells, second: Cells, bits: Cells) -> RowChange:
    """``first``: the row of a delete, of an insert, or before an update; ``second``: the row after an update. ``bits``:
    for each large column, whether the update changed it."""
    if operation == INSERT:
        return RowChange(None, first)
    if operation == DELETE:
        return RowChange(
            [ABSENT if one.type in NEVER_IN_BEFORE else cell for one, cell in _pairs(columns, first)], None
        )
    old, new, changed = list(first), list(second), iter(bits)
    for at, column in enumerate(columns):
        if not column.large:
            continue
        if next(changed):
            old[at] = ABSENT if column.type in NEVER_IN_BEFORE else old[at]
            continue
        known = new[at] if new[at] is not None else old[at]
        old[at] = new[at] = ABSENT if known is None else known
    return RowChange(old, new)


def _pairs(columns: Sequence[SqlColumn], cells: Cells) -> zip[tuple[SqlColumn, Any]]:
    return zip(columns, cells, strict=True)


class RowReader:
    """Converts the cells of ``columns`` to rows of ``schema``."""

    def __init__(self, task: TableTask, columns: Sequence[SqlColumn], schema: TableSchema) -> None:
        self.table, self.schema, self.schema_id = schema.table, schema, schema.schema_id
        self.sources = tuple(columns)
        indexes = {column.name: index for index, column in enumerate(columns)}
        self._columns = [
            _ColumnReader(schema, column, columns[at := indexes[column.text_of or column.name]], at)
            for column in schema.columns
        ]
        self._members = [f"{encode_basestring(column.name)}:" for column in schema.columns]
        self._key = [schema.names.index(name) for name in schema.key]
        self._where = task.rule.where
        by_name = {column.name: column for column in self._columns}
        self._filtered = [by_name[condition.column] for condition in self._where]
        self._cut = [(columns[at], at) for at in indexes.values() if columns[at].name not in schema.key]

    def read(self, change: RowChange) -> Row | None:
        """None if the row filter leaves the change out."""
        old, new = change
        before = old is not None and self._matches(old)
        after = new is not None and self._matches(new)
        if before and after:
            assert old is not None and new is not None
            return self._update(old, new)
        if before:
            assert old is not None
            return self._delete(old)
        if after:
            assert new is not None
            return self._insert(new)
        return None

    def read_partially(self, cells: Cells) -> DecodedPart:
        """The columns that can be decoded, and the names of the others."""
        known, columns = {}, []
        for column in self._columns:
            try:
                if (text := column.text(cells[column.index])) is not None:
                    known[column.name] = text
            except UNREADABLE:
                columns.append(column.name)
        return DecodedPart.of(self.schema.key, known, columns)

    def key_of(self, cells: Cells) -> str:
        return self._key_text([column.text(cells[column.index]) for column in self._columns])

    def _insert(self, new: Cells) -> Row:
        texts = self._texts(new)
        after, complete = self._image(texts)
        return Row(Operation.INSERT, None, self._key_text(texts), None, after, False, complete, self._warnings(new))

    def _delete(self, old: Cells) -> Row:
        texts = self._texts(old)
        before, complete = self._image(texts)
        return Row(Operation.DELETE, self._key_text(texts), None, before, None, complete, False, ())

    def _update(self, old: Cells, new: Cells) -> Row:
        """Decodes cells that did not change once. 0.0 and -0.0 are equal numbers with two texts."""
        old_texts = self._texts(old)
        new_texts = [
            text if old[at] == new[at] and not isinstance(new[at], float) else column.text(new[at])
            for text, column in zip(old_texts, self._columns, strict=True)
            for at in (column.index,)
        ]
        before, before_complete = self._image(old_texts)
        after, after_complete = self._image(new_texts)
        key_before, key = self._key_text(old_texts), self._key_text(new_texts)
        warnings, moved = self._warnings(new), key_before != key
        return Row(Operation.UPDATE, key_before, key, before, after, before_complete, after_complete, warnings, moved)

    def _texts(self, cells: Cells) -> list[str | None]:
        """Canonical JSON in the order of the schema; None for unknown values."""
        return [column.text(cells[column.index]) for column in self._columns]

    def _image(self, texts: Sequence[str | None]) -> tuple[str, bool]:
        known = [member + text for member, text in zip(self._members, texts, strict=True) if text is not None]
        return "{" + ",".join(known) + "}", len(known) == len(texts)

    def _key_text(self, texts: Sequence[str | None]) -> str:
        parts = [text for at in self._key if (text := texts[at]) is not None]
        if len(parts) < len(self._key):
            raise NotKnown("the key is unknown")
        return f"[{','.join(parts)}]"

    def _matches(self, cells: Cells) -> bool:
        if not self._where:
            return True
        if any(cells[column.index] is ABSENT for column in self._filtered):
            raise NotKnown("a column of the row filter is unknown")
        return matches(self._where, {column.name: column.operand(cells[column.index]) for column in self._filtered})

    def _warnings(self, cells: Cells) -> tuple[str, ...]:
        return (CUT,) if any(is_cut(source, cells[at]) for source, at in self._cut if cells[at] is not ABSENT) else ()


class _ColumnReader:
    def __init__(self, schema: TableSchema, column: Column, source: SqlColumn, index: int) -> None:
        self.name, self.index = column.name, index
        self._read = cell_reader(schema, column, source)
        is_cast = column.type != logical_type(source)
        self._operand: Callable[[Any], Any] = self._read if is_cast else source_reader(source)
        self._write = canonical_writer(column.type)

    def text(self, cell: Any) -> str | None:
        """Canonical JSON; None if the value is unknown."""
        if cell is None:
            return "null"
        if cell is ABSENT:
            return None
        value = self._read(cell)
        return "null" if value is None else self._write(value)

    def operand(self, cell: Any) -> Any:
        return None if cell is None else self._operand(cell)


def why(error: Exception) -> str:
    """A reason that quotes no value."""
    return str(error) if isinstance(error, NotKnown | Unrepresentable) else "a value is not one of its column's type"


def saved_cells(cells: Cells | None) -> bytes:
    """Cells as JSON, for a record that cannot be decoded."""

    def plain(cell: Any) -> Any:
        match cell:
            case Absent():
                return {"absent": True}
            case bytes() | bytearray():
                return {"bytes": b64encode(cell).decode()}
            case None | bool() | int() | float() | str():
                return cell
            case _:
                return {"text": str(cell)}

    return json.dumps(None if cells is None else [plain(cell) for cell in cells]).encode()

"""A row of the binlog as canonical JSON: its columns, its key, and whether its images are complete. Pure."""

from __future__ import annotations

from datetime import UTC
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.rows import DecodedPart, Row
from airflow_cdc_provider.connectors.sources.mysql.binlog import MALFORMED
from airflow_cdc_provider.connectors.sources.mysql.cells import Read, cell_reader
from airflow_cdc_provider.connectors.sources.mysql.charsets import NoText
from airflow_cdc_provider.connectors.sources.mysql.row_event import ABSENT, Absent, Cell, RowChange, fill_absent
from airflow_cdc_provider.connectors.sources.mysql.schemas import BinlogSchema
from airflow_cdc_provider.connectors.sources.mysql.value_conversion import convert_for_copy
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_writer
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.filters import InvalidDate, matches
from airflow_cdc_provider.core.table.schema import Column, Kind

UNREADABLE = (*MALFORMED, ValueError, LookupError)
"""Exceptions that reading a cell may raise."""


class KeyNotLogged(ValueError):
    """The row image lacks columns of the key or the row filter."""


class RowReader:
    """Converts the cells of one table map to rows of one schema. ``defaults_known``: the table was not altered since,
    so the defaults in the catalog apply."""

    def __init__(self, task: TableTask, found: BinlogSchema, defaults_known: bool = False) -> None:
        self.task = task
        self.found = found
        self.table = task.table
        self.schema = found.schema
        self.schema_id = found.schema.schema_id
        self._columns = [
            _ColumnReader(found, column, index)
            for column, index in zip(found.schema.columns, found.cell_indexes, strict=True)
        ]
        self._members = [f"{encode_basestring(column.name)}:" for column in self._columns]
        by_name = {column.name: column for column in self._columns}
        self._key = [found.schema.names.index(name) for name in found.schema.key]
        self._null_if_absent = [
            index for index, column in enumerate(found.described) if defaults_known and not column.default
        ]
        self._where = task.rule.where
        self._filtered = [by_name[condition.column] for condition in self._where]

    def read(self, change: RowChange) -> Row | None:
        """None if the row filter excludes the change."""
        old, new = change.old, change.new
        if new is None:
            assert old is not None
            return self._delete(old) if self._matches(old) else None
        if old is None:
            new = self._with_nulls(new)
            return self._insert(new) if self._matches(new) else None
        new = fill_absent(old, new)
        before, after = self._matches(old), self._matches(new)
        if before and after:
            return self._update(old, new)
        return self._delete(old) if before else self._insert(new) if after else None

    def read_partially(self, cells: list[Cell]) -> DecodedPart:
        """The values of the columns that can be decoded, and the names of the others."""
        known, columns = {}, []
        for column in self._columns:
            try:
                if (text := column.text(cells[column.index])) is not None:
                    known[column.name] = text
            except UNREADABLE:
                columns.append(column.name)
        return DecodedPart.of(self.schema.key, known, columns)

    def _with_nulls(self, new: list[Cell]) -> list[Cell]:
        """An absent column of an inserted row has its default value."""
        if ABSENT in new:
            new = list(new)
            for index in self._null_if_absent:
                new[index] = None if new[index] is ABSENT else new[index]
        return new

    def _insert(self, new: list[Cell]) -> Row:
        texts = self._texts(new)
        after, complete = self._image(texts)
        return Row(Operation.INSERT, None, self._key_of(texts), None, after, False, complete, ())

    def _delete(self, old: list[Cell]) -> Row:
        texts = self._old_texts(old)
        before, complete = self._image(texts)
        return Row(Operation.DELETE, self._key_of(texts), None, before, None, complete, False, ())

    def _update(self, old: list[Cell], new: list[Cell]) -> Row:
        """Decodes cells that did not change once."""
        old_texts = self._old_texts(old)
        new_texts = [
            text if text is not None and new[column.index] == old[column.index] else column.text(new[column.index])
            for text, column in zip(old_texts, self._columns, strict=True)
        ]
        before, before_complete = self._image(old_texts)
        after, after_complete = self._image(new_texts)
        key_before, key = self._key_of(old_texts), self._key_of(new_texts)
        moved = key_before != key
        return Row(Operation.UPDATE, key_before, key, before, after, before_complete, after_complete, (), moved)

    def _old_texts(self, cells: list[Cell]) -> list[str | None]:
        """As ``_texts``. In a table with a key, a former value that cannot be decoded counts as absent: the row has
        another one now, or is gone."""
        try:
            return self._texts(cells)
        except UNREADABLE:
            if not self._key:
                raise
        return [self._old_text(number, column, cells) for number, column in enumerate(self._columns)]

    def _old_text(self, number: int, column: _ColumnReader, cells: list[Cell]) -> str | None:
        try:
            return column.text(cells[column.index])
        except UNREADABLE:
            if number in self._key:
                raise
            return None

    def _texts(self, cells: list[Cell]) -> list[str | None]:
        """Canonical JSON in the order of the schema; None for absent cells."""
        return [column.text(cells[column.index]) for column in self._columns]

    def _image(self, texts: list[str | None]) -> tuple[str, bool]:
        known = [member + text for member, text in zip(self._members, texts, strict=True) if text is not None]
        return "{" + ",".join(known) + "}", len(known) == len(texts)

    def _key_of(self, texts: list[str | None]) -> str | None:
        if not self._key:
            return None
        parts = [text for index in self._key if (text := texts[index]) is not None]
        if len(parts) < len(self._key):
            raise KeyNotLogged("the row image lacks columns of the key")
        return f"[{','.join(parts)}]"

    def _matches(self, cells: list[Cell]) -> bool:
        """Whether the row passes the row filter."""
        if not self._where:
            return True
        if any(cells[column.index] is ABSENT for column in self._filtered):
            raise KeyNotLogged("the row image lacks columns of the row filter")
        return matches(self._where, {column.name: column.operand(cells[column.index]) for column in self._filtered})


class _ColumnReader:
    """``index``: that of the column's cell."""

    def __init__(self, found: BinlogSchema, column: Column, index: int) -> None:
        self.name, self.index = column.name, index
        self._plain, self._source = _reader(found, index), found.described[index].column.type
        self._read = convert_for_copy(found.schema, column, found.described[index], self._plain)
        self._write = canonical_writer(column.type)
        self._is_cast = column.type != self._source

    def text(self, cell: Cell) -> str | None:
        """Canonical JSON; None for an absent cell."""
        if cell is None:
            return "null"
        if isinstance(cell, Absent):
            return None
        value = self._read(cell)
        return "null" if value is None else self._write(value)

    def operand(self, cell: Cell) -> Any:
        """The value as the server compares it, which can differ from the copy's value."""
        assert not isinstance(cell, Absent)
        if cell is None:
            return None
        if self._is_cast:
            return self._read(cell)
        try:
            value = self._plain(cell)
            return value.replace(tzinfo=UTC) if self._source.kind is Kind.TIMESTAMPTZ else value
        except Unrepresentable as error:
            return InvalidDate(self._source.kind, error.text)


def _reader(found: BinlogSchema, index: int) -> Read:
    """A column without a decoder makes its rows unreadable, not the whole table."""
    try:
        return cell_reader(found.fields[index], found.described[index])
    except NoText as error:
        message = str(error)

        def fail(_cell: bytes) -> Any:
            raise NoText(message)

        return fail

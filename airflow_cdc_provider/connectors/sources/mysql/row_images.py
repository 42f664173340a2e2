"""One row of the binlog as canonical JSON: which columns, which key, which of its images are whole. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.rows import DecodedPart, Row
from airflow_cdc_provider.connectors.sources.mysql.binlog import MALFORMED
from airflow_cdc_provider.connectors.sources.mysql.cells import Read, reader_of
from airflow_cdc_provider.connectors.sources.mysql.row_event import ABSENT, Absent, Cell, RowChange
from airflow_cdc_provider.connectors.sources.mysql.schemas import BinlogSchema
from airflow_cdc_provider.connectors.sources.mysql.wanted_forms import formed
from airflow_cdc_provider.connectors.sources.polling.canonical import canonical_value
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.filters import InvalidDate, matches
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

UNREADABLE = (*MALFORMED, ValueError, LookupError)
"""What a cell may raise."""


class KeyNotLogged(ValueError):
    """The binlog does not say which row was changed."""


class RowReader:
    """How the cells of one table map become rows of one schema. Made once per table map. ``defaults_known``: the
    catalogue's defaults are those of then."""

    def __init__(self, task: TableTask, what: BinlogSchema, defaults_known: bool = False) -> None:
        self.task = task
        self.told = what
        self.table = task.table
        self.schema = what.schema
        self.schema_id = what.schema.schema_id
        self._columns = [
            _Reading(what, one, place) for one, place in zip(what.schema.columns, what.places, strict=True)
        ]
        self._members = [f"{encode_basestring(one.name)}:" for one in self._columns]
        by_name = {one.name: one for one in self._columns}
        self._key = [what.schema.names.index(name) for name in what.schema.key]
        self._nulls = [at for at, one in enumerate(what.described) if defaults_known and not one.default]
        self._where = task.rule.where
        self._filtered = [by_name[condition.column] for condition in self._where]

    def read(self, change: RowChange) -> Row | None:
        """None where the row filter leaves the change out."""
        old, new = change.old, change.new
        if new is None:
            assert old is not None
            return self._delete(old) if self._inside(old) else None
        if old is None:
            new = self._with_nulls(new)
            return self._insert(new) if self._inside(new) else None
        new = [then if now is ABSENT else now for then, now in zip(old, new, strict=True)]
        was, now = self._inside(old), self._inside(new)
        if was and now:
            return self._update(old, new)
        return self._delete(old) if was else self._insert(new) if now else None

    def salvage(self, cells: list[Cell]) -> DecodedPart:
        """Cell by cell: each is read for itself."""
        known, columns = {}, []
        for one in self._columns:
            try:
                if (text := one.text(cells[one.place])) is not None:
                    known[one.name] = text
            except UNREADABLE:
                columns.append(one.name)
        key = [known.get(name) for name in self.schema.key]
        return DecodedPart(f"[{','.join(map(str, key))}]" if key and None not in key else None, known, tuple(columns))

    def _with_nulls(self, new: list[Cell]) -> list[Cell]:
        """A new row holds the default of a column that was not sent."""
        if ABSENT in new:
            new = list(new)
            for place in self._nulls:
                new[place] = None if new[place] is ABSENT else new[place]
        return new

    def _insert(self, new: list[Cell]) -> Row:
        texts = self._texts(new)
        after, complete = self._image(texts)
        return Row(Operation.INSERT, None, self._key_of(texts), None, after, False, complete, ())

    def _delete(self, old: list[Cell]) -> Row:
        texts = self._texts(old)
        before, complete = self._image(texts)
        return Row(Operation.DELETE, self._key_of(texts), None, before, None, complete, False, ())

    def _update(self, old: list[Cell], new: list[Cell]) -> Row:
        """What did not change is read once."""
        then = self._texts(old)
        now = [
            text if new[one.place] == old[one.place] else one.text(new[one.place])
            for text, one in zip(then, self._columns, strict=True)
        ]
        before, before_complete = self._image(then)
        after, after_complete = self._image(now)
        was, key = self._key_of(then), self._key_of(now)
        return Row(Operation.UPDATE, was, key, before, after, before_complete, after_complete, (), was != key)

    def _texts(self, cells: list[Cell]) -> list[str | None]:
        """In the order of the schema; None for what was not sent."""
        return [one.text(cells[one.place]) for one in self._columns]

    def _image(self, texts: list[str | None]) -> tuple[str, bool]:
        known = [member + text for member, text in zip(self._members, texts, strict=True) if text is not None]
        return "{" + ",".join(known) + "}", len(known) == len(texts)

    def _key_of(self, texts: list[str | None]) -> str | None:
        if not self._key:
            return None
        parts = [text for place in self._key if (text := texts[place]) is not None]
        if len(parts) < len(self._key):
            raise KeyNotLogged("the image does not hold the key")
        return f"[{','.join(parts)}]"

    def _inside(self, cells: list[Cell]) -> bool:
        if not self._where:
            return True
        if any(cells[one.place] is ABSENT for one in self._filtered):
            raise KeyNotLogged("the image does not hold the columns of the row filter")
        return matches(self._where, {one.name: one.compared(cells[one.place]) for one in self._filtered})


class _Reading:
    """One column: where its cell is, and how it is read."""

    def __init__(self, what: BinlogSchema, column: Column, place: int) -> None:
        self.name, self.place = column.name, place
        self._plain, self._source = _reader(what, place), what.described[place].column.type
        self._read = formed(what.schema, column, what.described[place], self._plain)
        self._write = _writer(column.type)
        self._is_cast = column.type != self._source

    def text(self, cell: Cell) -> str | None:
        """Canonical JSON; None where the cell was not sent."""
        if cell is None:
            return "null"
        if isinstance(cell, Absent):
            return None
        value = self._read(cell)
        return "null" if value is None else self._write(value)

    def compared(self, cell: Cell) -> Any:
        """As the server compares it, whatever the copy holds in its place."""
        assert not isinstance(cell, Absent)
        if cell is None:
            return None
        if self._is_cast:
            return self._read(cell)
        try:
            return self._plain(cell)
        except Unrepresentable as error:
            return InvalidDate(self._source.kind, error.text)


def _writer(kind: LogicalType) -> Callable[[Any], str]:
    """What ``told`` does, without asking for each value what it is."""
    match kind.kind:
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return str
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return encode_basestring
        case Kind.DECIMAL:
            return lambda value: f'"{value:f}"'
        case _:
            return partial(canonical_value, kind)


def _reader(what: BinlogSchema, place: int) -> Read:
    """A column that nobody can read makes its rows unreadable, not its table."""
    try:
        return reader_of(what.fields[place], what.described[place])
    except LookupError as error:
        words = str(error)

        def refuse(_cell: bytes) -> Any:
            raise LookupError(words)

        return refuse

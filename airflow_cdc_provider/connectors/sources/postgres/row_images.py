"""Converts a row change of the stream to canonical JSON: its key, its images, and whether they are complete. Pure."""

from __future__ import annotations

from json.encoder import encode_basestring
from operator import add

from airflow_cdc_provider.connectors.rows import DecodedPart, Row
from airflow_cdc_provider.connectors.sources.postgres.messages import (
    INSERT,
    MALFORMED,
    OLD,
    UNCHANGED,
    Cell,
    MalformedMessage,
    Relation,
    RowChange,
)
from airflow_cdc_provider.connectors.sources.postgres.types import converters, python_value
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.filters import matches
from airflow_cdc_provider.core.table.schema import TableSchema


class RowReader:
    """Reads the cells of one relation as rows of one schema. Created once per relation message. ``cell_indexes``: per
    column of the schema its index among the ``width`` cells of a row. ``limited``: a row has values that the role may
    not select."""

    def __init__(self, relation: Relation, task: TableTask, schema: TableSchema, limited: bool = False) -> None:
        self.task, self.limited = task, limited
        self.table = task.table
        self.schema = schema
        self.schema_id = schema.schema_id
        self.width = len(relation.attributes)
        index_of = {attribute.name: index for index, attribute in enumerate(relation.attributes)}
        self.cell_indexes = [index_of[column.text_of or column.name] for column in schema.columns]
        self._same_order = self.cell_indexes == list(range(self.width))
        self._members = [f"{encode_basestring(name)}:" for name in schema.names]
        self._converters = converters(schema)
        self._key = [schema.names.index(name) for name in schema.key]
        self._identity = [i for i, attribute in enumerate(relation.attributes) if attribute.identity]
        self.identity_names = tuple(
            name for name, index in zip(schema.names, self.cell_indexes, strict=True) if index in self._identity
        )
        self._where = task.rule.where
        self._filtered = [
            (condition.column, index_of[condition.column], schema.column(condition.column).type.kind)
            for condition in self._where
        ]

    def read(self, change: RowChange) -> Row | None:
        """None if the row filter leaves the change out."""
        letter, _, old_kind, old, new = change
        whole = old_kind == OLD
        if new is None:
            assert old is not None
            return None if self._where and whole and not self._matches_filter(old) else self._delete(old, whole)
        if letter == INSERT:
            return self._insert(new) if not self._where or self._matches_filter(new) else None
        return self._update(old, whole, new)

    def salvage(self, cells: list[Cell]) -> DecodedPart:
        """Read each cell by itself. Raises MalformedMessage if the number of cells is wrong."""
        if len(cells) != self.width:
            raise MalformedMessage(f"a row of {len(cells)} cells in a relation of {self.width}")
        known, columns = {}, []
        for name, index, convert in zip(self.schema.names, self.cell_indexes, self._converters, strict=True):
            cell = cells[index]
            try:
                if cell is not UNCHANGED:
                    known[name] = "null" if cell is None else convert(cell)
            except MALFORMED:
                columns.append(name)
        return DecodedPart.of(self.schema.key, known, columns)

    def known_cells(self, change: RowChange) -> tuple[list[Cell] | None, list[Cell]]:
        """The old cells (None for an insert or if they were not sent) and the new cells of a change. For a delete, None
        and the old cells. Unknown cells are UNCHANGED."""
        _, _, old_kind, old, new = change
        before = None if old is None else old if old_kind == OLD else self._identity_only(old)
        if new is None:
            assert before is not None
            return None, before
        if before is not None:
            new = [old_cell if cell is UNCHANGED else cell for old_cell, cell in zip(before, new, strict=True)]
        return before, new

    def _insert(self, new: list[Cell]) -> Row:
        values = self._values(new)
        after, complete = self._image(values)
        return Row(Operation.INSERT, None, self._key_of(values), None, after, False, complete, ())

    def _delete(self, old: list[Cell], whole: bool) -> Row:
        values = self._old_values(old if whole else self._identity_only(old))
        before, complete = self._image(values)
        return Row(Operation.DELETE, self._key_of(values), None, before, None, complete, False, ())

    def _update(self, old: list[Cell] | None, whole: bool, new: list[Cell]) -> Row | None:
        known = None if old is None else old if whole else self._identity_only(old)
        if UNCHANGED in new and known is not None:
            new = [old_cell if cell is UNCHANGED else cell for old_cell, cell in zip(known, new, strict=True)]
        if self._where:
            matched = not whole or known is None or self._matches_filter(known)
            matches_now = self._matches_filter(new)
            if not matched:
                return self._insert(new) if matches_now else None
            if not matches_now:
                return self._delete(new if known is None else known, whole)
        values = self._values(new)
        after, complete = self._image(values)
        key = self._key_of(values)
        if known is None:
            return Row(Operation.UPDATE, key, key, None, after, False, complete, ())
        values = self._old_values(known)
        before, before_complete = self._image(values)
        key_before = self._key_of(values)
        return Row(
            Operation.UPDATE,
            key_before,
            key,
            before,
            after,
            before_complete,
            complete,
            (),
            key != key_before,
        )

    def _identity_only(self, old: list[Cell]) -> list[Cell]:
        """A key image has NULL for all other columns; these are unknown, not NULL."""
        cells: list[Cell] = [UNCHANGED] * len(old)
        for index in self._identity:
            cells[index] = old[index]
        return cells

    def _values(self, cells: list[Cell]) -> list[str | None]:
        """JSON texts in the order of the schema; None if the value is unknown."""
        if not self._same_order:
            if len(cells) != self.width:
                raise MalformedMessage(f"a row of {len(cells)} cells in a relation of {self.width}")
            cells = [cells[index] for index in self.cell_indexes]
        return [
            convert(cell) if cell is not None and cell is not UNCHANGED else None if cell is UNCHANGED else "null"
            for convert, cell in zip(self._converters, cells, strict=True)
        ]

    def _old_values(self, cells: list[Cell]) -> list[str | None]:
        """As ``_values``. In a table with a key, a former value that cannot be read is unknown: the row has another one
        now, or is gone."""
        try:
            return self._values(cells)
        except MALFORMED:
            if not self._key:
                raise
        readable = list(cells)
        for number, (index, convert) in enumerate(zip(self.cell_indexes, self._converters, strict=True)):
            try:
                if (cell := cells[index]) is not None and cell is not UNCHANGED:
                    convert(cell)
            except MALFORMED:
                if number in self._key:
                    raise
                readable[index] = UNCHANGED
        return self._values(readable)

    def _image(self, values: list[str | None]) -> tuple[str, bool]:
        try:
            return "{" + ",".join(map(add, self._members, values)) + "}", True
        except TypeError:  # an unknown value is None, which cannot be added; few rows have one
            known = [member + value for member, value in zip(self._members, values, strict=True) if value is not None]
            return f"{{{','.join(known)}}}", False

    def _key_of(self, values: list[str | None]) -> str | None:
        if not self._key:
            return None
        try:
            return f"[{','.join([values[index] for index in self._key])}]"  # type: ignore[misc]
        except TypeError as error:  # an unknown value is None
            raise MalformedMessage(f"the key of a row of {self.table} is not in the message") from error

    def _matches_filter(self, cells: list[Cell]) -> bool:
        values = {}
        for name, index, kind in self._filtered:
            if cells[index] is UNCHANGED:
                raise MalformedMessage(f"column {name}, which the row filter requires, is not in the message")
            values[name] = python_value(kind, cells[index])
        return matches(self._where, values)

"""Turn the values of an event into the image of a row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.sources.salesforce.bitmaps import FieldBitmap, parse_bitmap
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.field_columns import ColumnValue, FieldMapping, map_fields
from airflow_cdc_provider.connectors.sources.salesforce.header import Header
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import NULL
from airflow_cdc_provider.core.table.schema import TableSchema

MAX_PLANS = 4096
"""Size of the cache of plans: the same bitmaps occur often."""

Step = tuple[Callable[[Any], Iterable[ColumnValue]], str]
"""A conversion, and the name of the field whose value it converts."""


class EventImage(NamedTuple):
    """``prefix`` and ``suffix`` are the members of the JSON object before and after the id. ``refetch``: columns that
    changed and whose values must be fetched. ``complete``: every column has a value. ``empty``: none has."""

    prefix: str
    suffix: str
    refetch: tuple[str, ...]
    complete: bool
    empty: bool

    def after(self, record_id: str) -> str:
        """Canonical JSON. An id needs no escaping."""
        return f'{{{self.prefix}"{ID}":"{record_id}"{self.suffix}}}'


class EventLayout:
    """Events of one schema as rows of one table. ``rounded``: columns of which Salesforce keeps digits that it does not
    show."""

    def __init__(
        self, event: EventSchema, described: ObjectSchema, table: TableSchema, rounded: Set[str] = frozenset()
    ) -> None:
        self._names = table.names
        self._fields = [field.name for field in event.fields]
        self._mappings = map_fields(event, described, table, rounded)
        self._members = [f"{encode_basestring(name)}:" for name in table.names]
        self._not_nullable = [index for index, column in enumerate(table.columns) if not column.nullable]
        self._constant: dict[int, str | None] = {
            index: "false" for index, name in enumerate(table.names) if name == IS_DELETED
        }
        self._id_index = table.names.index(ID)
        self._mapped = {name: m for name, m in zip(self._fields, self._mappings, strict=True) if m.columns}
        self._nulls = {index: text for mapping in self._mapped.values() for index, text in mapping.values(None)}
        self._plans: dict[tuple[tuple[str, ...], ...], list[Step]] = {}

    @property
    def unsent(self) -> frozenset[str]:
        """Columns that no event of this schema carries: their values are as of the last copy or fetch."""
        sent = {column.index for mapping in self._mappings for column in mapping.columns}
        sent |= {self._id_index} | self._constant.keys()
        return frozenset(name for index, name in enumerate(self._names) if index not in sent)

    def full_image(self, values: dict[str, Any]) -> EventImage:
        """All fields count, nulls too. A null in a column that is not nullable means that the value was not sent."""
        filled = self._nulls.copy()
        for name, value in values.items():
            if mapping := self._mapped.get(name):
                filled.update(mapping.values(value))
        empty = all(text is None or text == NULL for text in filled.values())
        for index in self._not_nullable:
            if filled.get(index) == NULL:
                filled[index] = None
        return self._image(filled | self._constant, empty)

    def partial_image(self, values: dict[str, Any], header: Header) -> EventImage:
        """Only the fields in the bitmaps count. Any other null means unchanged; any other value is ignored."""
        bitmaps = (header.changed, header.nulled, header.diffs)
        plan = self._plans.get(bitmaps)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[bitmaps] = list(self._plan(*map(parse_bitmap, bitmaps)))
        filled = self._run(plan, values)
        return self._image(filled, not filled)

    @staticmethod
    def _run(plan: list[Step], values: dict[str, Any]) -> dict[int, str | None]:
        filled: dict[int, str | None] = {}
        for convert, name in plan:
            for index, text in convert(values.get(name)):
                filled[index] = text
        return filled

    def _image(self, filled: dict[int, str | None], empty: bool) -> EventImage:
        known = sorted(filled.items(), key=itemgetter(0))
        refetch: tuple[str, ...] = ()
        if None in filled.values():
            refetch = tuple(self._names[index] for index, text in known if text is None)
            known = [item for item in known if item[1] is not None]
        members = self._members
        return EventImage(
            "".join([f"{members[index]}{text}," for index, text in known if index < self._id_index]),
            "".join([f",{members[index]}{text}" for index, text in known if index > self._id_index]),
            refetch,
            len(known) + 1 == len(members),
            empty,
        )

    def _plan(self, changed: FieldBitmap, nulled: FieldBitmap, diffs: FieldBitmap) -> Iterator[Step]:
        for index in changed.fields:
            mapping = self._mapping(index)
            if mapping.columns:
                yield mapping.values, self._fields[index]
        for index, members in changed.members.items():
            if index not in changed.fields:
                yield self._member_step(index, members)
        yield from self._plan_nulled(changed, nulled)
        for index in (*diffs.fields, *diffs.members):
            yield self._mapping(index).unknown_values, self._fields[index]

    def _plan_nulled(self, changed: FieldBitmap, nulled: FieldBitmap) -> Iterator[Step]:
        """Fields that are nulled and not changed. If the value is not null, it must be fetched."""
        for index in nulled.fields:
            if index not in changed.fields:
                yield self._mapping(index).nulled_values, self._fields[index]
        for index, members in nulled.members.items():
            rest = tuple(member for member in members if member not in changed.members.get(index, ()))
            if rest and index not in changed.fields:
                yield self._member_step(index, rest)

    def _member_step(self, index: int, members: tuple[int, ...]) -> Step:
        mapping = self._mapping(index)
        return lambda value: mapping.member_values(value, members), self._fields[index]

    def _mapping(self, index: int) -> FieldMapping:
        if index >= len(self._mappings):
            raise DecodeError(f"a bitmap names field {index} of a schema with {len(self._mappings)} fields")
        return self._mappings[index]

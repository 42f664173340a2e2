"""How the events of one schema become rows of one table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.sources.salesforce.bitmaps import Marked, marked
from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.field_columns import Filled, Part, parts_of
from airflow_cdc_provider.connectors.sources.salesforce.header import Header
from airflow_cdc_provider.connectors.sources.salesforce.types import ID, IS_DELETED, ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import NULL
from airflow_cdc_provider.core.table.schema import TableSchema

MOST_PLANS = 4096
"""Bitmaps repeat; what they mean is kept for this many of them."""

Step = tuple[Callable[[Any], Iterable[Filled]], str]
"""What to do with the value of the field of this name."""


class EventImage(NamedTuple):
    """What an event tells of its records. ``before`` and ``behind`` are the members of the JSON object on either side
    of the id. ``refetch`` are columns that changed, and only the source can tell their values. ``complete``: every
    column is told. ``empty``: none is."""

    before: str
    behind: str
    refetch: tuple[str, ...]
    complete: bool
    empty: bool

    def after(self, record_id: str) -> str:
        """Canonical JSON. An id needs no escaping."""
        return f'{{{self.before}"{ID}":"{record_id}"{self.behind}}}'


class EventLayout:
    def __init__(self, event: EventSchema, described: ObjectSchema, table: TableSchema) -> None:
        self._names = table.names
        self._fields = [field.name for field in event.fields]
        self._parts = parts_of(event, described, table)
        self._members = [f"{encode_basestring(name)}:" for name in table.names]
        self._never_null = [place for place, column in enumerate(table.columns) if not column.nullable]
        self._constant: dict[int, str | None] = {
            place: "false" for place, name in enumerate(table.names) if name == IS_DELETED
        }
        self._id_place = table.names.index(ID)
        self._whole = {name: p for name, p in zip(self._fields, self._parts, strict=True) if p.cells}
        self._nulls = {place: text for part in self._whole.values() for place, text in part.whole(None)}
        self._plans: dict[tuple[tuple[str, ...], ...], list[Step]] = {}

    @property
    def unsent(self) -> frozenset[str]:
        """Columns that no event of this schema tells: they are as of the last copy or fetch."""
        told = {cell.place for part in self._parts for cell in part.cells} | {self._id_place} | self._constant.keys()
        return frozenset(name for place, name in enumerate(self._names) if place not in told)

    def whole(self, values: dict[str, Any]) -> EventImage:
        """All fields count, nulls too; but a null that the column cannot hold was only not sent."""
        filled = self._nulls.copy()
        for name, value in values.items():
            if part := self._whole.get(name):
                filled.update(part.whole(value))
        empty = all(text is None or text == NULL for text in filled.values())
        for place in self._never_null:
            if filled.get(place) == NULL:
                filled[place] = None
        return self._image(filled | self._constant, empty)

    def changed(self, values: dict[str, Any], header: Header) -> EventImage:
        """Only the fields that the bitmaps name count; any other null means unchanged, any other value is extra."""
        bitmaps = (header.changed, header.nulled, header.diffs)
        plan = self._plans.get(bitmaps)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[bitmaps] = list(self._plan(*map(marked, bitmaps)))
        filled = self._filled(plan, values)
        return self._image(filled, not filled)

    @staticmethod
    def _filled(plan: list[Step], values: dict[str, Any]) -> dict[int, str | None]:
        filled: dict[int, str | None] = {}
        for step, name in plan:
            for place, text in step(values.get(name)):
                filled[place] = text
        return filled

    def _image(self, filled: dict[int, str | None], empty: bool) -> EventImage:
        known = sorted(filled.items(), key=itemgetter(0))
        refetch: tuple[str, ...] = ()
        if None in filled.values():
            refetch = tuple(self._names[place] for place, text in known if text is None)
            known = [item for item in known if item[1] is not None]
        members = self._members
        return EventImage(
            "".join([f"{members[place]}{text}," for place, text in known if place < self._id_place]),
            "".join([f",{members[place]}{text}" for place, text in known if place > self._id_place]),
            refetch,
            len(known) + 1 == len(members),
            empty,
        )

    def _plan(self, changed: Marked, nulled: Marked, diffs: Marked) -> Iterator[Step]:
        for place in changed.fields:
            part = self._part(place)
            if part.cells:
                yield part.whole, self._fields[place]
        for place, members in changed.members.items():
            if place not in changed.fields:
                yield self._some(place, members)
        yield from self._only_nulled(changed, nulled)
        for place in (*diffs.fields, *diffs.members):
            yield self._part(place).unknown, self._fields[place]

    def _only_nulled(self, changed: Marked, nulled: Marked) -> Iterator[Step]:
        """What is said to be nulled and not said to be changed. A null value agrees; else only the source can tell."""
        for place in nulled.fields:
            if place not in changed.fields:
                yield self._part(place).nulled, self._fields[place]
        for place, members in nulled.members.items():
            rest = tuple(member for member in members if member not in changed.members.get(place, ()))
            if rest and place not in changed.fields:
                yield self._some(place, rest)

    def _some(self, place: int, members: tuple[int, ...]) -> Step:
        part = self._part(place)
        return lambda value: part.some(value, members), self._fields[place]

    def _part(self, place: int) -> Part:
        if place >= len(self._parts):
            raise DecodeError(f"a bitmap names field {place} of a schema with {len(self._parts)} fields")
        return self._parts[place]

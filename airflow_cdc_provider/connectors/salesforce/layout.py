"""How the events of one schema become rows of one table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.salesforce.bitmaps import Marked, marked
from airflow_cdc_provider.connectors.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.salesforce.header import Header
from airflow_cdc_provider.connectors.salesforce.parts import Filled, Part, parts_of
from airflow_cdc_provider.connectors.salesforce.types import ID, IS_DELETED, Described
from airflow_cdc_provider.connectors.salesforce.unreadable import Unreadable
from airflow_cdc_provider.connectors.salesforce.values import NULL
from airflow_cdc_provider.core.tables import TableSchema

MOST_PLANS = 4096
"""Bitmaps repeat; what they mean is kept for this many of them."""

Step = Callable[[dict[str, Any]], Iterable[Filled]]


class Image(NamedTuple):
    """What an event tells of a row, without its id. ``texts``: (place of the column, member of the JSON object) in the
    table's order. ``refetch`` are columns that changed, and only the source can tell their values."""

    texts: tuple[tuple[int, str], ...]
    refetch: tuple[str, ...]
    warnings: tuple[str, ...]
    empty: bool


class Layout:
    def __init__(self, event: EventSchema, described: Described, table: TableSchema) -> None:
        self.event = event
        self.table = table
        self._warnings: list[str] = []
        self._names = [field.name for field in event.fields]
        self._parts = parts_of(event, described, table, self._warnings.append)
        self._members = [f"{encode_basestring(name)}:" for name in table.names]
        self._never_null = frozenset(place for place, column in enumerate(table.columns) if not column.nullable)
        self._constant = [(place, "false") for place, name in enumerate(table.names) if name == IS_DELETED]
        self._id_place = table.names.index(ID)
        self._plans: dict[tuple[tuple[str, ...], ...], list[Step]] = {}

    def whole(self, event: dict[str, Any]) -> Image:
        """All fields count, nulls too; but a null that the column cannot hold was only not sent."""
        filled: dict[int, str | None] = dict(self._constant)
        for name, part in zip(self._names, self._parts, strict=True):
            filled.update(part.whole(event[name]))
        told = filled.items() - set(self._constant)
        empty = all(text in (None, NULL) for _, text in told)
        for place in self._never_null:
            if filled.get(place) == NULL:
                filled[place] = None
        return self._image(filled, empty)

    def changed(self, event: dict[str, Any], header: Header) -> Image:
        """Only the fields that the bitmaps name count; any other null means unchanged, any other value is extra."""
        bitmaps = (header.changed, header.nulled, header.diffs)
        plan = self._plans.get(bitmaps)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[bitmaps] = list(self._plan(*map(marked, bitmaps)))
        filled: dict[int, str | None] = {}
        for step in plan:
            filled.update(step(event))
        return self._image(filled, not filled)

    def after(self, image: Image, record_id: str) -> str:
        """The image as canonical JSON, with the id in its place."""
        member = f"{self._members[self._id_place]}{encode_basestring(record_id)}"
        before = [text for place, text in image.texts if place < self._id_place]
        behind = [text for place, text in image.texts if place > self._id_place]
        return f"{{{','.join((*before, member, *behind))}}}"

    def is_complete(self, image: Image) -> bool:
        return len(image.texts) + 1 == len(self._members)

    def _image(self, filled: dict[int, str | None], empty: bool) -> Image:
        known = [(place, f"{self._members[place]}{text}") for place, text in sorted(filled.items()) if text is not None]
        refetch = tuple(self.table.names[place] for place, text in sorted(filled.items(), key=_place) if text is None)
        warnings = tuple(dict.fromkeys(self._warnings))
        self._warnings.clear()
        return Image(tuple(known), refetch, warnings, empty)

    def _plan(self, changed: Marked, nulled: Marked, diffs: Marked) -> Iterator[Step]:
        for place in changed.fields:
            yield self._whole_step(*self._at(place))
        for place, members in changed.members.items():
            if place not in changed.fields:
                yield self._some_step(*self._at(place), members)
        yield from self._only_nulled(changed, nulled)
        for place in (*diffs.fields, *diffs.members):
            yield _unknown_step(self._at(place)[1])

    def _only_nulled(self, changed: Marked, nulled: Marked) -> Iterator[Step]:
        """What is said to be nulled and not said to be changed. A null value agrees; else only the source can tell."""
        for place in nulled.fields:
            name, part = self._at(place)
            if place in changed.fields:
                continue
            yield _unknown_step(part) if part.members else self._if_null_step(name, part)
        for place, members in nulled.members.items():
            rest = tuple(member for member in members if member not in changed.members.get(place, ()))
            if rest and place not in changed.fields:
                yield self._some_step(*self._at(place), rest)

    def _at(self, place: int) -> tuple[str, Part]:
        if place >= len(self._parts):
            raise Unreadable(f"a bitmap names field {place} of a schema with {len(self._parts)} fields")
        return self._names[place], self._parts[place]

    @staticmethod
    def _whole_step(name: str, part: Part) -> Step:
        return lambda event: part.whole(event[name])

    @staticmethod
    def _some_step(name: str, part: Part, members: tuple[int, ...]) -> Step:
        return lambda event: part.some(event[name], members)

    @staticmethod
    def _if_null_step(name: str, part: Part) -> Step:
        return lambda event: part.whole(None) if event[name] is None else part.unknown()


def _unknown_step(part: Part) -> Step:
    return lambda event: part.unknown()


def _place(filled: tuple[int, str | None]) -> int:
    return filled[0]

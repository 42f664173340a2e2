"""Which columns the fields of an event fill. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.dead_letter_codec import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventField, EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import NULL, FromAvro, WrongValue, from_avro
from airflow_cdc_provider.core.table.schema import Kind, TableSchema

Filled = tuple[int, str | None]
"""Place of a column and its value as JSON; None where the column changed and only the source can tell its value."""


@dataclass(frozen=True)
class Cell:
    """A column, by its place in the table. ``convert`` is None where the field's type cannot become the column's."""

    place: int
    column: str
    convert: FromAvro | None

    def filled(self, value: Any) -> Filled:
        if self.convert is None:
            return self.place, NULL if value is None else None
        try:
            return self.place, self.convert(value)
        except WrongValue as error:
            raise DecodeError(f"column {self.column}: {error}") from error


class Part:
    """What one field of the event fills, given its value. A field that is no column of ours fills nothing."""

    members = 0
    cells: tuple[Cell, ...] = ()

    def whole(self, value: Any) -> Iterable[Filled]:
        return ()

    def some(self, value: Any, places: tuple[int, ...]) -> Iterable[Filled]:
        """Only these members changed."""
        raise DecodeError("a bitmap speaks of members of a field that has none")

    def nulled(self, value: Any) -> Iterable[Filled]:
        """The field is said to be nulled, and not said to be changed."""
        return self.whole(None) if value is None and not self.members else self.unknown(value)

    def unknown(self, value: Any) -> Iterable[Filled]:
        return [(cell.place, None) for cell in self.cells]


class Plain(Part):
    def __init__(self, cell: Cell) -> None:
        self.cells = (cell,)
        self._cell = cell

    def whole(self, value: Any) -> Iterable[Filled]:
        return (self._cell.filled(value),)


class Compound(Part):
    """``columns`` per member, None where it is no column of ours. ``joined`` is the column that the source makes of all
    members by rules of its own: an event carries it only where the field itself is a text."""

    def __init__(self, names: tuple[str, ...], columns: tuple[Cell | None, ...], joined: Cell | None) -> None:
        self.members = len(names)
        self._pairs = tuple(zip(names, columns, strict=True))
        self._joined = joined
        self.cells = tuple(cell for cell in (*columns, joined) if cell)

    def whole(self, value: Any) -> Iterable[Filled]:
        if isinstance(value, str):
            if self._joined:
                yield self._joined.filled(value)
            yield from ((cell.place, NULL) for _, cell in self._pairs if cell)
        else:
            yield from self.some(value, tuple(range(self.members)))

    def some(self, value: Any, places: tuple[int, ...]) -> Iterable[Filled]:
        if isinstance(value, str):
            raise DecodeError("a bitmap speaks of members of a field that came as text")
        if places and places[-1] >= self.members:
            raise DecodeError("a bitmap reaches beyond the members of a field")
        for place in places:
            name, cell = self._pairs[place]
            if cell:
                yield cell.filled(None if value is None else value[name])
        if self._joined:
            yield self._joined.place, None


class Choices(Part):
    """The names of all switches that are on, each of which is a column."""

    def __init__(self, name: str, columns: tuple[tuple[int, str], ...]) -> None:
        self._name = name
        self._columns = columns
        self.cells = tuple(Cell(place, column, None) for place, column in columns)

    def whole(self, value: Any) -> Iterable[Filled]:
        on = set(value or ())
        for place, column in self._columns:
            yield place, "true" if on & {column, column.removeprefix(self._name)} else "false"


NOTHING = Part()


def parts_of(event: EventSchema, described: ObjectSchema, table: TableSchema) -> tuple[Part, ...]:
    """One part per field of the event."""
    places = {column.name: place for place, column in enumerate(table.columns)}

    def cell(name: str, field: EventField) -> Cell | None:
        if name not in places:
            return None
        kind = table.columns[places[name]].type
        return Cell(places[name], name, from_avro(kind, field.meaning, field.avro))

    return (NOTHING, *(_part(field, described, table, places, cell) for field in event.fields[1:]))


def _part(
    field: EventField,
    described: ObjectSchema,
    table: TableSchema,
    places: dict[str, int],
    cell: Callable[[str, EventField], Cell | None],
) -> Part:
    if field.members:
        components = {name for name, compound in described.compounds.items() if compound == field.name}
        names = tuple(member.name for member in field.members)
        columns = tuple(
            cell(name, member) if (name := component_name(field.name, member.name)) in components else None
            for member in field.members
        )
        text = EventField(field.name, "", "string")
        return Compound(names, columns, cell(field.name, text))
    if field.avro == "array":
        switches = ((place, name) for name, place in places.items() if name.startswith(field.name))
        return Choices(field.name, tuple((p, n) for p, n in switches if table.columns[p].type.kind is Kind.BOOLEAN))
    found = cell(field.name, field)
    return Plain(found) if found else NOTHING


def component_name(compound: str, member: str) -> str:
    """BillingAddress.Street is BillingStreet, Name.FirstName is FirstName, Site__c.Latitude is Site__Latitude__s."""
    if compound.endswith("__c"):
        return f"{compound.removesuffix('__c')}__{member}__s"
    if compound == "Name":
        return member
    return compound.removesuffix("Address") + member

"""Map the fields of an event to columns. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError, MoreDigitsThanDescribed
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventField, EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.connectors.sources.salesforce.values import (
    NULL,
    FromAvro,
    MoreDigits,
    WrongValue,
    from_avro,
)
from airflow_cdc_provider.core.table.schema import Kind, TableSchema

ColumnValue = tuple[int, str | None]
"""Index of a column and its value as JSON; None if the column changed and its value must be fetched."""


@dataclass(frozen=True)
class ColumnConverter:
    """``convert`` is None if the field's type cannot be converted to the column's."""

    index: int
    column: str
    convert: FromAvro | None

    def value(self, value: Any) -> ColumnValue:
        if self.convert is None:
            return self.index, NULL if value is None else None
        try:
            return self.index, self.convert(value)
        except MoreDigits as error:
            raise MoreDigitsThanDescribed(self.column, str(error)) from error
        except WrongValue as error:
            raise DecodeError(f"column {self.column}: {error}") from error


class FieldMapping:
    """The columns of one event field. This base class maps a field to no column."""

    member_count = 0
    columns: tuple[ColumnConverter, ...] = ()

    def values(self, value: Any) -> Iterable[ColumnValue]:
        return ()

    def member_values(self, value: Any, members: tuple[int, ...]) -> Iterable[ColumnValue]:
        """Only these members changed."""
        raise DecodeError("a bitmap names members of a field that has none")

    def nulled_values(self, value: Any) -> Iterable[ColumnValue]:
        """The field is in the bitmap of nulled fields, and not in that of changed fields."""
        return self.values(None) if value is None and not self.member_count else self.unknown_values(value)

    def unknown_values(self, value: Any) -> Iterable[ColumnValue]:
        return [(column.index, None) for column in self.columns]


class PlainField(FieldMapping):
    def __init__(self, column: ColumnConverter) -> None:
        self.columns = (column,)
        self._column = column

    def values(self, value: Any) -> Iterable[ColumnValue]:
        return (self._column.value(value),)


class CompoundField(FieldMapping):
    """``columns``: per member, None if it is not replicated. ``joined``: the column that Salesforce computes from all
    members. An event contains its value only if the field itself is a text."""

    def __init__(
        self, names: tuple[str, ...], columns: tuple[ColumnConverter | None, ...], joined: ColumnConverter | None
    ) -> None:
        self.member_count = len(names)
        self._members = tuple(zip(names, columns, strict=True))
        self._joined = joined
        self.columns = tuple(column for column in (*columns, joined) if column)

    def values(self, value: Any) -> Iterable[ColumnValue]:
        if isinstance(value, str):
            if self._joined:
                yield self._joined.value(value)
            yield from ((column.index, NULL) for _, column in self._members if column)
        else:
            yield from self.member_values(value, tuple(range(self.member_count)))

    def member_values(self, value: Any, members: tuple[int, ...]) -> Iterable[ColumnValue]:
        if isinstance(value, str):
            raise DecodeError("a bitmap names members of a field whose value is a text")
        if members and members[-1] >= self.member_count:
            raise DecodeError("a bitmap names a member that the field does not have")
        for member in members:
            name, column = self._members[member]
            if column:
                yield column.value(None if value is None else value[name])
        if self._joined:
            yield self._joined.index, None


class SwitchesField(FieldMapping):
    """The value is the list of the switches that are on. Each switch is a column."""

    def __init__(self, name: str, switches: tuple[tuple[int, str], ...]) -> None:
        self._name = name
        self._switches = switches
        self.columns = tuple(ColumnConverter(index, column, None) for index, column in switches)

    def values(self, value: Any) -> Iterable[ColumnValue]:
        on = set(value or ())
        for index, column in self._switches:
            yield index, "true" if on & {column, column.removeprefix(self._name)} else "false"


UNMAPPED = FieldMapping()


def map_fields(
    event: EventSchema, described: ObjectSchema, table: TableSchema, rounded: Set[str]
) -> tuple[FieldMapping, ...]:
    """One mapping per field of the event. ``rounded``: columns whose values are rounded to their type; one of another
    column raises MoreDigitsThanDescribed."""
    indexes = {column.name: index for index, column in enumerate(table.columns)}

    def converter(name: str, field: EventField) -> ColumnConverter | None:
        if name not in indexes:
            return None
        kind = table.columns[indexes[name]].type
        convert = from_avro(kind, field.data_type, field.avro, exact=name not in rounded)
        return ColumnConverter(indexes[name], name, convert)

    return (UNMAPPED, *(_map_field(field, described, table, indexes, converter) for field in event.fields[1:]))


def _map_field(
    field: EventField,
    described: ObjectSchema,
    table: TableSchema,
    indexes: dict[str, int],
    converter: Callable[[str, EventField], ColumnConverter | None],
) -> FieldMapping:
    if field.members:
        components = {name for name, compound in described.compounds.items() if compound == field.name}
        names = tuple(member.name for member in field.members)
        columns = tuple(
            converter(name, member) if (name := component_name(field.name, member.name)) in components else None
            for member in field.members
        )
        text = EventField(field.name, "", "string")
        return CompoundField(names, columns, converter(field.name, text))
    if field.avro == "array":
        columns_of_field = ((index, name) for name, index in indexes.items() if name.startswith(field.name))
        return SwitchesField(
            field.name, tuple((i, name) for i, name in columns_of_field if table.columns[i].type.kind is Kind.BOOLEAN)
        )
    column = converter(field.name, field)
    return PlainField(column) if column else UNMAPPED


def component_name(compound: str, member: str) -> str:
    """BillingAddress.Street is BillingStreet, Name.FirstName is FirstName, Site__c.Latitude is Site__Latitude__s."""
    if compound.endswith("__c"):
        return f"{compound.removesuffix('__c')}__{member}__s"
    if compound == "Name":
        return member
    return compound.removesuffix("Address") + member

"""An object of the org at one version of its definition, and the slots of its fields in a stored row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.fields import Field

Row = tuple[Any, ...]

# Every row starts with these slots, also if its object lacks the field.
ID, DELETED, CREATED, CREATED_BY, MODIFIED, MODIFIED_BY, MODSTAMP, ARCHIVED = range(8)
SYSTEM_SLOTS = (
    "Id",
    "IsDeleted",
    "CreatedDate",
    "CreatedById",
    "LastModifiedDate",
    "LastModifiedById",
    "SystemModstamp",
    "IsArchived",
)


@dataclass(frozen=True)
class ObjectType:
    """``fields`` in the order of describe. ``stored`` names the slots of a row; a slot is never reused.

    ``bulk``: Bulk API supports it.
    """

    name: str
    prefix: str
    fields: tuple[Field, ...]
    stored: tuple[str, ...]
    bulk: bool = True
    queryable: bool = True
    replicateable: bool = True
    version: int = 1

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def by_lower_name(self) -> Mapping[str, Field]:
        return {field.name.lower(): field for field in self.fields}

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """The slot of each stored field. A converted field has two slots in ``stored``; the later one is used."""
        return {name: slot for slot, name in enumerate(self.stored)}

    @cached_property
    def event_fields(self) -> tuple[Field, ...]:
        """The fields of change events: compound fields without their parts, no internal fields."""
        return tuple(field for field in self.fields if field.event_type and not field.compound)

    @property
    def custom(self) -> bool:
        return self.name.endswith("__c")

    @property
    def event_name(self) -> str:
        return f"{self.name.removesuffix('__c')}__ChangeEvent" if self.custom else f"{self.name}ChangeEvent"

    def values(self, row: Row, now: str) -> dict[str, Any]:
        """All values of a row by name, with formulas and the parts of compound fields."""
        row = self.fit(row)
        values = {field.name: row[self.slots[field.name]] for field in self.fields if field.stored}
        for field in self.fields:
            if field.formula:
                values[field.name] = field.formula(values, now)
        return values

    def new_row(self, record: str, second: str, user: str) -> list[Any]:
        """A row with its system fields and its owner. Booleans are false, all other fields are null."""
        row = list(self._defaults)
        row[: ARCHIVED + 1] = [record, False, second, user, second, user, second, False]
        if "OwnerId" in self.slots:
            row[self.slots["OwnerId"]] = user
        return row

    @cached_property
    def _defaults(self) -> Row:
        booleans = {self.slots[field.name] for field in self.fields if field.kind == "boolean"}
        return tuple(False if slot in booleans else None for slot in range(len(self.stored)))

    def fit(self, row: Row) -> Row:
        """A row of an earlier version with nulls for newer fields."""
        return row + (None,) * (len(self.stored) - len(row))

    def with_field(self, field: Field) -> ObjectType:
        """Add or replace a field. Its values start as nulls in a new slot."""
        fields = [one for one in self.fields if one.name != field.name]
        stored = (*self.stored, field.name) if field.stored else self.stored
        return replace(self, fields=(*fields, field), stored=stored, version=self.version + 1)

    def with_type(self, field: Field) -> ObjectType:
        """Replace a field by one of the same name that stores the same values."""
        fields = tuple(field if one.name == field.name else one for one in self.fields)
        return replace(self, fields=fields, version=self.version + 1)

    def with_name(self, old: str, new: str) -> ObjectType:
        """Rename a field, which keeps its values."""
        fields = tuple(replace(one, name=new) if one.name == old else one for one in self.fields)
        stored = tuple(new if name == old else name for name in self.stored)
        return replace(self, fields=fields, stored=stored, version=self.version + 1)

    def without_field(self, name: str) -> ObjectType:
        fields = tuple(field for field in self.fields if field.name != name)
        return replace(self, fields=fields, version=self.version + 1)


def object_type(name: str, prefix: str, fields: list[Field], **more: Any) -> ObjectType:
    stored = [field.name for field in fields if field.stored and field.name not in SYSTEM_SLOTS]
    return ObjectType(name, prefix, tuple(fields), (*SYSTEM_SLOTS, *stored), **more)

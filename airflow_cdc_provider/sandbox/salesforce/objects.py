"""An object of the org at one version of its definition, and where its fields stand in a stored row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.fields import Field

Row = tuple[Any, ...]

# Every row starts with these, whether or not its object shows them.
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
    """``fields`` in the order of describe. ``stored`` names the slots of a row; a slot is never used twice.

    ``bulk``: Bulk API takes it. ``captured``: Change Data Capture can be switched on for it.
    """

    name: str
    prefix: str
    fields: tuple[Field, ...]
    stored: tuple[str, ...]
    bulk: bool = True
    queryable: bool = True
    replicateable: bool = True
    captured: bool = True
    version: int = 1

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def by_lower_name(self) -> Mapping[str, Field]:
        return {field.name.lower(): field for field in self.fields}

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """Slot of each stored field. Later slots win: a name that was converted has its old slot before its new one."""
        return {name: slot for slot, name in enumerate(self.stored)}

    @cached_property
    def event_fields(self) -> tuple[Field, ...]:
        """As change events carry them: compounds whole, nothing that only the org keeps for itself."""
        return tuple(field for field in self.fields if field.event_type and not field.compound)

    @property
    def custom(self) -> bool:
        return self.name.endswith("__c")

    @property
    def event_name(self) -> str:
        return f"{self.name.removesuffix('__c')}__ChangeEvent" if self.custom else f"{self.name}ChangeEvent"

    def values(self, row: Row, now: str) -> dict[str, Any]:
        """All values of a row by name, formulas too; compounds are told by their parts."""
        found = {name: row[slot] if slot < len(row) else None for name, slot in self.slots.items()}
        found = {field.name: found[field.name] for field in self.fields if field.stored}
        for field in self.fields:
            if field.formula:
                found[field.name] = field.formula(found, now)
        return found

    def fit(self, row: Row) -> Row:
        """A row of an earlier version: fields that came meanwhile are empty."""
        return row + (None,) * (len(self.stored) - len(row))

    def with_field(self, field: Field) -> ObjectType:
        """A new field, or another type under a known name: then its values start empty in a slot of their own."""
        fields = [one for one in self.fields if one.name != field.name]
        stored = (*self.stored, field.name) if field.stored else self.stored
        return replace(self, fields=(*fields, field), stored=stored, version=self.version + 1)

    def without_field(self, name: str) -> ObjectType:
        fields = tuple(field for field in self.fields if field.name != name)
        return replace(self, fields=fields, version=self.version + 1)


def object_type(name: str, prefix: str, fields: list[Field], **more: Any) -> ObjectType:
    stored = [field.name for field in fields if field.stored and field.name not in SYSTEM_SLOTS]
    return ObjectType(name, prefix, tuple(fields), (*SYSTEM_SLOTS, *stored), **more)

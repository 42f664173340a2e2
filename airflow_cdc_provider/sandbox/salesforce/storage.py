"""The committed rows of every object, with soft-deleted ones, and the locks on records."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.errors import no_such_object
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.ids import record_id
from airflow_cdc_provider.sandbox.salesforce.objects import ARCHIVED, DELETED, ObjectType, Row


@dataclass(frozen=True)
class Deletion:
    """``group`` is the same for all records of one delete; undelete restores the group."""

    second: str
    group: str


@dataclass
class Table:
    """``deletions``: the records in the Recycle Bin; ``delete_log`` (second, id): all deletes, with purged records."""

    type: ObjectType
    rows: dict[str, Row] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    delete_log: list[tuple[str, str]] = field(default_factory=list)
    last_number: int = 0
    last_auto_number: int = 0

    def next_id(self) -> str:
        self.last_number += 1
        return self.id_of(self.last_number)

    def id_of(self, number: int) -> str:
        return record_id(self.type.prefix, number)

    def set_auto_number(self, row: list[Any]) -> None:
        """Set the name of a new row if it is an auto number."""
        name = self.type.by_name.get("Name")
        if name is not None and name.auto_number:
            self.last_auto_number += 1
            row[self.type.slots["Name"]] = name.auto_number.format(self.last_auto_number)

    def visible(self, everything: bool = False) -> Iterable[Row]:
        """``everything``: with deleted and archived rows, as in queryAll."""
        if everything:
            return self.rows.values()
        return (row for row in self.rows.values() if not row[DELETED] and not row[ARCHIVED])


class Store:
    """``lock`` protects rows and definitions. ``holders``: locked record → the key of its transaction."""

    def __init__(self, types: Iterable[ObjectType]) -> None:
        self.lock = threading.RLock()
        self.tables = {one.name: Table(one) for one in types}
        self._by_lower_name = {name.lower(): table for name, table in self.tables.items()}
        self.holders: dict[str, str] = {}

    def table(self, name: str) -> Table:
        """Raises ApiError INVALID_TYPE (400)."""
        table = self._by_lower_name.get(name.lower())
        if table is None:
            raise no_such_object(name)
        return table

    def by_id(self, record: str) -> Table | None:
        """The table with the key prefix of the id."""
        return next((table for table in self.tables.values() if table.type.prefix == record[:3]), None)

    def add(self, created: ObjectType) -> None:
        self.tables[created.name] = self._by_lower_name[created.name.lower()] = Table(created)

    def change_type(self, name: str, changed: ObjectType) -> None:
        """Replace the definition. New slots are null in all rows."""
        with self.lock:
            table = self.table(name)
            missing = (None,) * (len(changed.stored) - len(table.type.stored))
            if missing:
                table.rows = {key: row + missing for key, row in table.rows.items()}
            table.type = changed

    def add_field(self, name: str, new: Field) -> None:
        self.change_type(name, self.table(name).type.with_field(new))

    def retype_field(self, name: str, changed: Field) -> None:
        self.change_type(name, self.table(name).type.with_type(changed))

    def rename_field(self, name: str, old: str, new: str) -> None:
        self.change_type(name, self.table(name).type.with_name(old, new))

    def drop_field(self, name: str, field_name: str) -> None:
        self.change_type(name, self.table(name).type.without_field(field_name))

    def refuse_bulk(self, name: str) -> None:
        self.change_type(name, replace(self.table(name).type, bulk=False))

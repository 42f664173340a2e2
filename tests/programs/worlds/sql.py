"""Tables of a database, written by statements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.programs.source import KEY, Column, Table
from tests.programs.worlds.world import World


class SqlWorld(World):
    types: ClassVar[Mapping[str, str]]
    quote: ClassVar[str]

    @abstractmethod
    def execute(self, *statements: str) -> None: ...

    @abstractmethod
    def literal(self, value: Any) -> str: ...

    def quoted(self, name: str) -> str:
        return f"{self.quote}{name}{self.quote}"

    def type_of(self, column: Column, text_keys: bool) -> str:
        return self.types["textkey" if text_keys else "intkey"] if column.kind == "key" else self.types[column.kind]

    def create(self, table: Table) -> None:
        columns = [f"{self.quoted(one.name)} {self.type_of(one, table.text_keys)}" for one in table.columns]
        self.execute(f"CREATE TABLE {table.called} ({', '.join(columns)}, PRIMARY KEY ({KEY}))")
        for key in table.rows:
            self.put(table, key, None)

    def put(self, table: Table, key: Any, before: dict[str, Any] | None) -> None:
        row = table.named_row(key)
        if before is None:
            names, values = ", ".join(map(self.quoted, row)), ", ".join(map(self.literal, row.values()))
            self.execute(f"INSERT INTO {table.called} ({names}) VALUES ({values})")
        else:
            changed = [f"{self.quoted(name)} = {self.literal(value)}" for name, value in row.items() if name != KEY]
            self.execute(f"UPDATE {table.called} SET {', '.join(changed)} WHERE {KEY} = {self.literal(key)}")

    def delete(self, table: Table, key: Any, before: dict[str, Any]) -> None:
        self.execute(f"DELETE FROM {table.called} WHERE {KEY} = {self.literal(key)}")

    def move(self, table: Table, key: Any, to: Any, before: dict[str, Any]) -> None:
        self.execute(f"UPDATE {table.called} SET {KEY} = {self.literal(to)} WHERE {KEY} = {self.literal(key)}")

    def truncate(self, table: Table) -> None:
        self.execute(f"TRUNCATE TABLE {table.called}")

    def add(self, table: Table, column: Column) -> None:
        default = "" if column.default is None else f" DEFAULT {self.literal(column.default)}"
        self.execute(
            f"ALTER TABLE {table.called} ADD COLUMN {self.quoted(column.name)} {self.types[column.kind]}{default}"
        )

    def drop(self, table: Table, name: str) -> None:
        self.execute(f"ALTER TABLE {table.called} DROP COLUMN {self.quoted(name)}")

    def drop_table(self, table: Table) -> None:
        self.execute(f"DROP TABLE {table.called}")

    def rename_table(self, table: Table, name: str) -> None:
        self.execute(f"ALTER TABLE {table.called} RENAME TO {name}")
        table.called = name

    def rename(self, table: Table, old: str, new: str) -> None:
        self.execute(f"ALTER TABLE {table.called} RENAME COLUMN {self.quoted(old)} TO {self.quoted(new)}")

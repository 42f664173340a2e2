"""Files with the events of Debezium's connector for MySQL and of changefeeds of YDB."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.schema import Column as CopiedColumn
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from tests.programs.source import KEY, Column, Table
from tests.programs.worlds.world import World
from tests.spark.pipelines.schema_changes.reported.feeds import (
    ChangingDebezium,
    ChangingDebeziumWithStatements,
    ChangingFeed,
    ChangingYdb,
    SimulatedTable,
)

NOON_MS, THREE_HOURS_MS = 1_780_000_000_000, 3 * 3_600_000
TYPES = {"int": "int", "long": "long", "text": "text", "short": "text", "time": "text"}


class FeedWorld(World):
    """Files of messages. Those that were read are removed after a while."""

    has_bad = False
    is_feed = True
    loses_log = True
    kit: ChangingFeed
    read_at = 0

    @property
    def source(self) -> Source:
        return self.kit.source

    def settled(self) -> None:
        self.read_at = self.kit._moment

    def lose_log(self) -> None:
        for path in (self.kit.folder / "events").rglob("*"):
            if path.is_file() and path.stat().st_mtime <= self.read_at:
                path.unlink()


class DebeziumWorld(FeedWorld):
    """The connector writes whole rows. ``statements``: and its schema-change topic."""

    def __init__(self, folder: Path, statements: bool) -> None:
        super().__init__()
        kit = ChangingDebeziumWithStatements if statements else ChangingDebezium
        self.kit = kit(folder, format="debezium", topic_prefix="p")
        self.shows_renames = statements
        self._now = count(NOON_MS, 1000)
        self._back = 0

    def table_name(self, name: str) -> str:
        return f"d.{name}"

    def create(self, table: Table) -> None:
        self.kit.created(self._simulated(table))
        self._write(table, [self._event(table, "c", key, None, table.named_row(key)) for key in table.rows])

    def put(self, table: Table, key: Any, before: dict[str, Any] | None) -> None:
        self._write(table, [self._event(table, "u" if before else "c", key, before, table.named_row(key))])

    def delete(self, table: Table, key: Any, before: dict[str, Any]) -> None:
        self._write(table, [self._event(table, "d", key, before, None)])

    def move(self, table: Table, key: Any, to: Any, before: dict[str, Any]) -> None:
        after = table.named_row(to)
        self._write(table, [self._event(table, "d", key, before, None), self._event(table, "c", to, None, after)])

    def truncate(self, table: Table) -> None:
        self.kit.write(self._simulated(table), self.kit.truncate(self._simulated(table), next(self.kit._numbers)))

    def add(self, table: Table, column: Column) -> None:
        kind = {"int": "int", "text": "text"}[column.kind]
        default = "" if column.default is None else f" DEFAULT {column.default}"
        self._state(table, f"ALTER TABLE {table.name} ADD {column.name} {kind}{default}")

    def drop(self, table: Table, name: str) -> None:
        self._state(table, f"ALTER TABLE {table.name} DROP {name}")

    def rename(self, table: Table, old: str, new: str) -> None:
        self._state(table, f"ALTER TABLE {table.name} RENAME COLUMN {old} TO {new}")

    def retype(self, table: Table, column: Column) -> None:
        self._state(table, f"ALTER TABLE {table.name} MODIFY {column.name} bigint")

    def set_clock(self, forth: bool) -> None:
        self._back += -THREE_HOURS_MS if forth else THREE_HOURS_MS

    def _state(self, table: Table, ddl: str) -> None:
        if isinstance(self.kit, ChangingDebeziumWithStatements):
            self.kit.state(self._simulated(table), "ALTER", ddl)

    def _simulated(self, table: Table) -> SimulatedTable:
        kinds = {one.name: _type(one, table) for one in table.columns}
        return SimulatedTable(
            table.name, kinds, KEY, {c.name: c.default for c in table.columns if c.default is not None}
        )

    def _event(self, table: Table, op: str, key: Any, before: Any, after: Any) -> str:
        simulated, number = self._simulated(table), next(self.kit._numbers)
        at = next(self._now) - self._back
        source = self.kit._source(simulated, number) | {"ts_ms": at}
        fields = [self.kit._field(simulated, KEY)]
        payload = {"before": before, "after": after, "op": op, "ts_ms": at, "source": source}
        return self.kit._line(
            simulated, number, {"schema": {"type": "struct", "fields": fields}, "payload": {KEY: key}}, payload
        )

    def _write(self, table: Table, events: Iterable[str]) -> None:
        self.kit.write(self._simulated(table), events)


def _type(column: Column, table: Table) -> str:
    if column.kind == "key":
        return "text" if table.text_keys else "int"
    return TYPES[column.kind]


class YdbWorld(FeedWorld):
    """Changefeeds with whole rows, whose columns the user declares."""

    truncates = alters = False
    kinds: ClassVar[dict[str, tuple[Kind, str]]] = {"int": (Kind.INT32, "Int32"), "text": (Kind.TEXT, "Utf8")}

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.kit = ChangingYdb(folder, format="ydb")
        self.folder = folder

    def table_name(self, name: str) -> str:
        return name

    def create(self, table: Table) -> None:
        kinds = ((one.name, *self.kinds[_type(one, table)]) for one in table.columns)
        columns = tuple(CopiedColumn(name, LogicalType(kind), True, native) for name, kind, native in kinds)
        self.kit.declared.append(to_plain(TableSchema(table.name, columns, (KEY,))))
        (self.folder / "schemas.json").write_text(json.dumps(self.kit.declared))
        self._write(table, [self._event(table, key, table.named_row(key)) for key in table.rows])

    def put(self, table: Table, key: Any, before: dict[str, Any] | None) -> None:
        self._write(table, [self._event(table, key, table.named_row(key))])

    def delete(self, table: Table, key: Any, before: dict[str, Any]) -> None:
        self._write(table, [self._event(table, key, None)])

    def move(self, table: Table, key: Any, to: Any, before: dict[str, Any]) -> None:
        self._write(table, [self._event(table, key, None), self._event(table, to, table.named_row(to))])

    def _event(self, table: Table, key: Any, row: dict[str, Any] | None) -> str:
        number = next(self.kit._numbers)
        image = None if row is None else {name: value for name, value in row.items() if name != KEY}
        change = {"erase": {}} if image is None else {"update": {}, "newImage": image}
        place = {"topic": f"{table.name}/feed", "partition": 0, "offset": number, "headers": {}}
        return json.dumps({**place, "key": None, "value": {"key": [key], "ts": [number, 0], **change}})

    def _write(self, table: Table, events: Iterable[str]) -> None:
        self.kit.write(SimulatedTable(table.name), events)

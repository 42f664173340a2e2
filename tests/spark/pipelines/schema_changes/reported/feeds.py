"""Files of events of Debezium, Datastream and YDB, written by the tests, one folder per table."""

from __future__ import annotations

import json
import os
import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors.formats import avro_writer as avro
from tests.spark.pipelines.schema_changes.reported.changing_source import Case, ChangingSource, Rows, texts

Row = dict[str, Any]
COLUMNS = {"id": "int", "a": "int", "k": "int", "v": "text"}
ROWS = {1: ("v1", 10), 2: ("v2", 20), 3: ("v3", 30)}


@dataclass
class SimulatedTable:
    """``columns``: name → type, as the messages have them. ``defaults``: of columns with a constant default."""

    name: str
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    key: str = "id"
    defaults: dict[str, Any] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)

    def put(self, key: int, **values: Any) -> Row:
        row = {**dict.fromkeys(self.columns), **self.defaults, **self.rows.get(key, {}), "id": key, **values}
        self.rows[key] = {name: row.get(name) for name in self.columns}
        return self.rows[key]

    def alter(self, change: TableChange) -> None:
        match change:
            case TableChange.ADD_COLUMN:
                self.columns["z"] = "int"
            case TableChange.FILLED_COLUMN:
                self.columns["z"], self.defaults["z"] = "int", 5
            case TableChange.DROP_COLUMN:
                del self.columns["v"]
            case TableChange.REPLACE_COLUMN:
                self.rows = {key: {**row, "v": None} for key, row in self.rows.items()}
            case TableChange.RENAME_COLUMN:
                self.columns = {"v2" if name == "v" else name: kind for name, kind in self.columns.items()}
                self.rows = {key: {**row, "v2": row["v"]} for key, row in self.rows.items()}
            case TableChange.WIDEN:
                self.columns["a"] = "long"
            case TableChange.NARROW:
                self.columns["a"] = "text"
                self.rows = {key: {**row, "a": str(row["a"])} for key, row in self.rows.items()}
            case TableChange.REWRITE:
                self.rows = {key: {**row, "a": row["a"] + 1} for key, row in self.rows.items()}
            case TableChange.CHANGE_KEY:
                self.key = "k"
            case TableChange.RENAME_TABLE:
                self.name = f"{self.name}_new"
            case _:
                self.rows = {}
        filled = {**dict.fromkeys(self.columns), **self.defaults}
        self.rows = {key: {name: {**filled, **row}[name] for name in self.columns} for key, row in self.rows.items()}


class ChangingFeed(ChangingSource):
    """All changes of a table after its first rows are in one file, unless its format has one schema per file."""

    one_schema_per_file: ClassVar[bool] = False
    suffix: ClassVar[str] = ".jsonl"

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.options = options
        self.tables: dict[str, SimulatedTable] = {}
        self._numbers = count(1)
        self._moment = time.time() - 7200.0

    @property
    def source(self) -> Source:
        return Source("files", "", options={"location": f"{self.folder}/events", **self.options})

    @property
    def secrets(self) -> Secrets:
        return Secrets()

    @abstractmethod
    def message(self, table: SimulatedTable, number: int, row: Row) -> Any:
        """A row after its insert or update. ``number``: of the message in the source's log."""

    @abstractmethod
    def content(self, table: SimulatedTable, messages: Iterable[Any]) -> bytes:
        """Of a file."""

    def truncate(self, table: SimulatedTable, number: int) -> list[Any]:
        return []

    def created(self, table: SimulatedTable) -> None:
        """Before its first rows."""

    def altered(self, table: SimulatedTable, change: TableChange, before: str) -> None:
        """``before``: the name of the table before the change."""

    def create(self, case: Case) -> None:
        table = self.tables[str(case)] = SimulatedTable(str(case))
        self.created(table)
        self.write(table, [self._put(table, key, a=a, k=key, v=v) for key, (v, a) in ROWS.items()])

    def change(self, case: Case) -> None:
        table = self.tables[str(case)]
        messages = [self._put(table, 1, a=11)]
        if self.one_schema_per_file:
            self.write(table, messages)
            messages = []
        before = table.name
        table.alter(case.change)
        self.altered(table, case.change, before)
        if case.change is TableChange.TRUNCATE:
            messages += self.truncate(table, next(self._numbers))
        a = "40" if case.change is TableChange.NARROW else 40
        self.write(table, [*messages, self._put(table, 4, a=a, k=4)])

    def truth(self, case: Case) -> Rows:
        return texts(self.tables[str(case)].rows)

    def write(self, table: SimulatedTable, messages: Iterable[Any]) -> None:
        self.write_file(f"{table.name}/{next(self._numbers)}", self.content(table, messages))

    def write_file(self, name: str, content: bytes) -> None:
        """Files are older than an hour, in the order in which they are written."""
        path = self.folder / "events" / f"{name}{self.suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._moment += 1
        os.utime(path, (self._moment, self._moment))

    def put(self, table: SimulatedTable, key: int, **values: Any) -> None:
        """Writes a row in a file of its own."""
        self.write(table, [self._put(table, key, **values)])

    def _put(self, table: SimulatedTable, key: int, **values: Any) -> Any:
        return self.message(table, next(self._numbers), table.put(key, **values))


class ChangingDebezium(ChangingFeed):
    """A connector of MySQL, with schemas."""

    types: ClassVar[dict[str, str]] = {"int": "int32", "long": "int64", "text": "string"}

    def name(self, case: Case) -> str:
        return f"d.{case}"

    def message(self, table: SimulatedTable, number: int, row: Row) -> Any:
        payload = {"before": None, "after": dict(row), "op": "u", "ts_ms": 0, "source": self._source(table, number)}
        key = {"schema": {"type": "struct", "fields": [self._field(table, table.key)]}, "payload": {}}
        key["payload"] = {table.key: row[table.key]}
        return self._line(table, number, key, payload)

    def content(self, table: SimulatedTable, messages: Iterable[Any]) -> bytes:
        return "\n".join(messages).encode()

    def truncate(self, table: SimulatedTable, number: int) -> list[Any]:
        payload = {"before": None, "after": None, "op": "t", "ts_ms": 0, "source": self._source(table, number)}
        return [self._line(table, number, None, payload)]

    def _line(self, table: SimulatedTable, number: int, key: Any, payload: dict[str, Any]) -> str:
        fields = [self._field(table, name) for name in table.columns]
        rows = [{"type": "struct", "optional": True, "field": one, "fields": fields} for one in ("before", "after")]
        value = {"schema": {"type": "struct", "fields": rows}, "payload": payload}
        place = {"topic": f"p.d.{table.name}", "partition": 0, "offset": number, "headers": {}}
        return json.dumps({**place, "key": key, "value": value})

    def _source(self, table: SimulatedTable, number: int) -> dict[str, Any]:
        block = {"connector": "mysql", "db": "d", "table": table.name, "file": "b.1", "pos": number, "row": 0}
        return {**block, "snapshot": "false"}

    def _field(self, table: SimulatedTable, name: str) -> dict[str, Any]:
        made = {"type": self.types[table.columns[name]], "optional": name not in ("id", "k"), "field": name}
        return made | ({"default": table.defaults[name]} if name in table.defaults else {})


class ChangingDebeziumWithStatements(ChangingDebezium):
    """The connector writes its schema-change topic, too."""

    statements: ClassVar[dict[TableChange, str]] = {
        TableChange.ADD_COLUMN: "ALTER TABLE {0} ADD z int",
        TableChange.FILLED_COLUMN: "ALTER TABLE {0} ADD z int DEFAULT 5",
        TableChange.DROP_COLUMN: "ALTER TABLE {0} DROP v",
        TableChange.REPLACE_COLUMN: "ALTER TABLE {0} DROP v, ADD v text",
        TableChange.RENAME_COLUMN: "ALTER TABLE {0} RENAME COLUMN v TO v2",
        TableChange.WIDEN: "ALTER TABLE {0} MODIFY a bigint",
        TableChange.NARROW: "ALTER TABLE {0} MODIFY a text",
        TableChange.REWRITE: "ALTER TABLE {0} MODIFY a int",
        TableChange.CHANGE_KEY: "ALTER TABLE {0} DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
        TableChange.RENAME_TABLE: "RENAME TABLE {0} TO {0}_new",
    }

    def created(self, table: SimulatedTable) -> None:
        self.state(table, "CREATE", f"CREATE TABLE {table.name} (…)")

    def altered(self, table: SimulatedTable, change: TableChange, before: str) -> None:
        if change in self.statements:
            self.state(table, "ALTER", self.statements[change].format(before))

    def state(self, table: SimulatedTable, kind: str, ddl: str) -> None:
        """A message with the columns after the statement."""
        number = next(self._numbers)
        types = {"int": "INT", "long": "BIGINT", "text": "VARCHAR"}
        columns = [
            {"name": name, "typeName": types[kind], "position": place, "optional": name not in ("id", "k")}
            for place, (name, kind) in enumerate(table.columns.items(), 1)
        ]
        change = {"type": kind, "id": f'"d"."{table.name}"'}
        change["table"] = {"primaryKeyColumnNames": [table.key], "columns": columns}
        payload = {"source": self._source(table, number), "ts_ms": 0, "databaseName": "d", "schemaName": None}
        payload |= {"ddl": ddl, "tableChanges": [change]}
        place = {"topic": "p", "partition": 0, "offset": number, "headers": {}}
        self.write_file(f"p/{number}", json.dumps({**place, "key": None, "value": payload}).encode())


class ChangingDatastream(ChangingFeed):
    """Avro files of a stream of MySQL."""

    one_schema_per_file = True
    suffix = ".avro"

    def name(self, case: Case) -> str:
        return f"d.{case}"

    def message(self, table: SimulatedTable, number: int, row: Row) -> Any:
        metadata = {"table": table.name, "database": "d", "change_type": "UPDATE-INSERT", "is_deleted": False}
        metadata |= {"log_file": "b.1", "log_position": number, "primary_keys": [table.key]}
        return {
            "stream_name": "s",
            "read_method": "mysql-cdc-binlog",
            "object": table.name,
            "schema_key": "k",
            "uuid": f"d7989206-380f-0e81-8056-{number:012b}",
            "read_timestamp": 1_700_000_000_000 + number,
            "source_timestamp": 1_700_000_000_000 + number,
            "sort_keys": [number],
            "source_metadata": metadata,
            "payload": dict(row),
        }

    def content(self, table: SimulatedTable, messages: Iterable[Any]) -> bytes:
        types = {"int": "int", "long": "long", "text": "string"}
        payload = [avro.nullable(name, types[kind]) for name, kind in table.columns.items()]
        return avro.file(avro.schema(avro.MYSQL, payload), list(messages))


class ChangingYdb(ChangingFeed):
    """A changefeed with whole rows; its messages have no schema."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, schemas=f"{folder}/schemas.json", mode="NEW_IMAGE", **options)
        self.declared: list[Any] = []

    def name(self, case: Case) -> str:
        return str(case)

    def create(self, case: Case) -> None:
        types = {"int": (Kind.INT32, "Int32"), "text": (Kind.TEXT, "Utf8")}
        kinds = ((name, *types[kind]) for name, kind in COLUMNS.items())
        columns = tuple(Column(name, LogicalType(kind), True, native) for name, kind, native in kinds)
        self.declared.append(to_plain(TableSchema(str(case), columns, ("id",))))
        (self.folder / "schemas.json").write_text(json.dumps(self.declared))
        super().create(case)

    def message(self, table: SimulatedTable, number: int, row: Row) -> Any:
        columns = {name: value for name, value in row.items() if name != table.key}
        value = {"key": [row[table.key]], "update": {}, "newImage": columns, "ts": [number, 0]}
        place = {"topic": f"{table.name}/feed", "partition": 0, "offset": number, "headers": {}}
        return json.dumps({**place, "key": None, "value": value})

    def content(self, table: SimulatedTable, messages: Iterable[Any]) -> bytes:
        return "\n".join(messages).encode()

"""Tables whose schema is declared without types of the source, and messages of their rows."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Message
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors.formats import datastream_messages as datastream
from tests.connectors.formats import ydb_goldens as ydb
from tests.connectors.formats.golden import column
from tests.connectors.formats.refusals import pg_row

TABLES = {"debezium": "inv.s", "ydb": "shop/orders", "datastream": "shop.t"}
TYPES = {kind: LogicalType(kind) for kind in Kind if kind is not Kind.DECIMAL}
TYPES[Kind.DECIMAL] = LogicalType(Kind.DECIMAL, 10, 2)
VALUES: dict[Kind, Any] = {
    Kind.BOOLEAN: True,
    Kind.INT16: 1,
    Kind.INT32: 2,
    Kind.INT64: 3,
    Kind.FLOAT32: 1.5,
    Kind.FLOAT64: 2.5,
    Kind.DECIMAL: "1.50",
    Kind.TEXT: "x",
    Kind.JSON: '{"a":1}',
    Kind.UUID: "65df1ec1-a97d-47b2-ae56-3c023da6ee8c",
    Kind.BYTES: "AQI=",
    Kind.DATE: "2024-02-29",
    Kind.TIMESTAMP: "2024-02-29T12:34:56",
    Kind.TIMESTAMPTZ: "2024-02-29T12:34:56Z",
}


def message(form: str, **values: Any) -> Message:
    """A new row with the id 1."""
    match form:
        case "debezium":
            return pg_row({"id": 1, **values}, {"id": 1})
        case "ydb":
            return ydb.message({"key": [1], "update": {}, "newImage": values, "ts": [5, 7]})
    return datastream.line(datastream.event(datastream.mysql("INSERT", False), payload={"id": 1, **values}))


def setting(form: str, *columns: Column, cast: bool = False, **options: Any) -> DecoderSettings:
    """``cast``: column v is copied as text."""
    table = TABLES[form]
    rule = TableRule(table, columns=Columns(cast={"v": "text"} if cast else {}))
    schema = TableSchema(table, (column("id", Kind.INT64), *columns), ("id",))
    return DecoderSettings(1, {table: CopiedTable(rule, schema)}, options)


def every_kind(form: str) -> tuple[Message, DecoderSettings]:
    """A row with a column of each kind."""
    columns = [Column(kind.value, kind_type) for kind, kind_type in TYPES.items()]
    return message(form, **{kind.value: VALUES[kind] for kind in TYPES}), setting(form, *columns)

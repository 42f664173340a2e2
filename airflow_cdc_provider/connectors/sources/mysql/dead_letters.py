"""Changes of rows that cannot be understood: what of them can be told, and how they are read once more. Pure."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.rows import Row, UndecodedRow, reread_records, split_undecoded
from airflow_cdc_provider.connectors.sources.mysql.binlog import UPDATES, WRITES
from airflow_cdc_provider.connectors.sources.mysql.row_event import ABSENT, Cell, RowChange, rows_of, uncompressed
from airflow_cdc_provider.connectors.sources.mysql.row_images import UNREADABLE, KeyNotLogged, RowReader
from airflow_cdc_provider.connectors.sources.mysql.schemas import BinlogSchema, places_of
from airflow_cdc_provider.connectors.sources.mysql.table_map import parse_table_map
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, reason
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "mysql row event 1"


@dataclass(frozen=True)
class RowContext:
    """Without which nobody can read a row: the table map in base64, and the columns in its order."""

    table_map: str
    mariadb: bool
    described: tuple[CatalogColumn, ...]


def undecoded_record(
    layout: RowReader, table_map: bytes, mariadb: bool, kind: int, change: RowChange, error: Exception
) -> tuple[Row | None, UndecodedRow]:
    """What is known of a row that was met with ``error``. First the row that left its key, where the change moved one
    and both keys can be read."""
    context = RowContext(_text(table_map), mariadb, layout.told.described)
    whole = UndecodedRecord(
        CODEC,
        _text(bytes([uncompressed(kind)]) + change.raw),
        str(error) if isinstance(error, KeyNotLogged) else "the row cannot be read",
        _text(json.dumps(to_plain(context)).encode()),
        (Operation.UPDATE if kind in UPDATES else Operation.INSERT if kind in WRITES else Operation.DELETE).value,
    )
    old = None if change.old is None else layout.salvage(change.old)
    new = old if change.new is None else layout.salvage(_filled(change.old, change.new))
    assert new is not None
    if columns := new.columns or (old.columns if old else ()):
        listed = ", ".join(f"{name} ({layout.schema.column(name).native})" for name in columns)
        words = f"what came cannot be read as its column: {listed}"
        if isinstance(error, Unrepresentable):
            words = reason(columns, str(error), layout.schema.key)
        whole = replace(whole, reason=words, columns=columns, known=new.values)
    return split_undecoded(old, new, whole)


def reread(record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    what = undecoded(record)
    if what is None or what.codec != CODEC:
        return [record]
    try:
        context = from_plain(RowContext, json.loads(b64decode(what.context)))
        found = parse_table_map(b64decode(context.table_map), context.mariadb)
        places = places_of(schema, context.described)
        layout = RowReader(table, BinlogSchema(schema, places, found.fields, context.described))
        raw = b64decode(what.raw)
        (change,) = rows_of(raw[0], raw[1:], found)
        row = layout.read(change)
    except UNREADABLE:
        return [record]
    return reread_records(record, row)


def _filled(old: list[Cell] | None, new: list[Cell]) -> list[Cell]:
    return new if old is None else [then if now is ABSENT else now for then, now in zip(old, new, strict=True)]


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")

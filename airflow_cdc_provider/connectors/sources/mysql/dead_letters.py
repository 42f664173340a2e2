"""Undecodable row changes: what is known of them, and how they are decoded again later. Pure."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass, replace

from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of
from airflow_cdc_provider.connectors.rows import Row, UndecodedRow, reread_records, split_undecoded
from airflow_cdc_provider.connectors.sources.mysql.binlog import UPDATES, WRITES
from airflow_cdc_provider.connectors.sources.mysql.charsets import CORRECT_TEXT, NoText
from airflow_cdc_provider.connectors.sources.mysql.row_event import RowChange, fill_absent, parse_rows, uncompressed
from airflow_cdc_provider.connectors.sources.mysql.row_images import UNREADABLE, KeyNotLogged, RowReader
from airflow_cdc_provider.connectors.sources.mysql.schemas import BinlogSchema, cell_indexes
from airflow_cdc_provider.connectors.sources.mysql.table_map import parse_table_map
from airflow_cdc_provider.connectors.sources.mysql.types import CatalogColumn
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, reason
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded, without_bytes
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "mysql row event 1"


@dataclass(frozen=True)
class RowContext:
    """What a row can be decoded with: the table map in base64, and the columns in its order."""

    table_map: str
    mariadb: bool
    described: tuple[CatalogColumn, ...]


def undecoded_record(
    reader: RowReader,
    table_map: bytes,
    mariadb: bool,
    kind: int,
    change: RowChange,
    error: Exception,
    withheld: bool = False,
) -> tuple[Row | None, UndecodedRow]:
    """A row that raised ``error``, with the parts that can be decoded. First the departed row, if the change moved the
    row to another key and both keys can be decoded. ``withheld``: its bytes have values that the login may not
    select."""
    context = RowContext(base64_of(table_map), mariadb, reader.found.described)
    record = UndecodedRecord(
        CODEC,
        base64_of(bytes([uncompressed(kind)]) + change.raw),
        str(error) if isinstance(error, KeyNotLogged) else "the row cannot be decoded",
        base64_of(json.dumps(to_plain(context)).encode()),
        (Operation.UPDATE if kind in UPDATES else Operation.INSERT if kind in WRITES else Operation.DELETE).value,
    )
    old = None if change.old is None else reader.read_partially(change.old)
    new = old if change.new is None else reader.read_partially(fill_absent(change.old, change.new))
    assert new is not None
    if columns := new.columns or (old.columns if old else ()):
        listed = ", ".join(f"{name} ({reader.schema.column(name).native})" for name in columns)
        why = f"bytes that are not a value of their column's type: {listed}"
        if isinstance(error, Unrepresentable):
            why = reason(columns, str(error), reader.schema.key)
        elif isinstance(error, NoText):
            why = f"{listed}: {error}; {CORRECT_TEXT}"
        record = replace(record, reason=why, columns=columns, known=new.values)
    return split_undecoded(old, new, without_bytes(record) if withheld else record)


def reread(record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    saved = undecoded(record)
    if saved is None or saved.codec != CODEC:
        return [record]
    try:
        context = from_plain(RowContext, json.loads(b64decode(saved.context)))
        table_map = parse_table_map(b64decode(context.table_map), context.mariadb)
        indexes = cell_indexes(schema, context.described)
        reader = RowReader(table, BinlogSchema(schema, indexes, table_map.fields, context.described))
        raw = b64decode(saved.raw)
        (change,) = parse_rows(raw[0], raw[1:], table_map)
        row = reader.read(change)
    except UNREADABLE:
        return [record]
    return reread_records(record, row)

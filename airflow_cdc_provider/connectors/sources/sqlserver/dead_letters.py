"""Rows of a change table that cannot be decoded: what is known of them, and how they are decoded again. Pure."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of
from airflow_cdc_provider.connectors.rows import Row, UndecodedRow, reread_records, split_undecoded
from airflow_cdc_provider.connectors.sources.sqlserver.row_images import (
    ABSENT,
    UNREADABLE,
    Cells,
    RowChange,
    RowReader,
    saved_cells,
    why,
)
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, reason
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "sqlserver change row 1"


@dataclass(frozen=True)
class SavedRow:
    """The columns of the cells, in their order."""

    columns: tuple[SqlColumn, ...]


def undecoded_record(reader: RowReader, change: RowChange, error: Exception) -> tuple[Row | None, UndecodedRow]:
    """A row that raised ``error``, with the parts that can be decoded. First the departed row, if the change moved the
    row to another key and both keys can be decoded."""
    raw = b"[" + saved_cells(change.old) + b"," + saved_cells(change.new) + b"]"
    old = None if change.old is None else reader.read_partially(change.old)
    new = old if change.new is None else reader.read_partially(change.new)
    assert new is not None
    columns = new.columns or (old.columns if old else ())
    text = why(error)
    if columns and isinstance(error, Unrepresentable):
        text = reason(columns, str(error), reader.schema.key)
    elif columns:
        text = f"{text}: {', '.join(f'{name} ({reader.schema.column(name).native})' for name in columns)}"
    op = Operation.DELETE if change.new is None else Operation.INSERT if change.old is None else Operation.UPDATE
    context = base64_of(json.dumps(to_plain(SavedRow(reader.sources))).encode())
    record = UndecodedRecord(CODEC, base64_of(raw), text, context, op.value, new.values, columns)
    return split_undecoded(old, new, record)


def reread(record: ChangeRecord, task: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    saved = undecoded(record)
    if saved is None or saved.codec != CODEC:
        return [record]
    try:
        columns = from_plain(SavedRow, json.loads(b64decode(saved.context))).columns
        old, new = (_cells(cells, columns) for cells in json.loads(b64decode(saved.raw)))
        row = RowReader(task, columns, schema).read(RowChange(old, new))
    except UNREADABLE:
        return [record]
    return reread_records(record, row)


def _cells(saved: list[Any] | None, columns: tuple[SqlColumn, ...]) -> Cells | None:
    return None if saved is None else [_cell(cell, column) for cell, column in zip(saved, columns, strict=True)]


def _cell(saved: Any, column: SqlColumn) -> Any:
    match saved:
        case {"absent": True}:
            return ABSENT
        case {"bytes": text}:
            return b64decode(text)
        case {"text": text}:
            return Decimal(text) if column.type in ("decimal", "numeric", "money", "smallmoney") else text
        case _:
            return saved

"""Row changes that cannot be decoded: their readable parts, and how they are decoded again. Pure."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of
from airflow_cdc_provider.connectors.rows import DecodedPart, Row, UndecodedRow, reread_records, split_undecoded
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.messages import Cell
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, reason
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded, without_bytes
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "pgoutput 1"
OPERATIONS = {
    messages.INSERT: Operation.INSERT,
    messages.UPDATE: Operation.UPDATE,
    messages.DELETE: Operation.DELETE,
}


def undecoded_record(
    reader: RowReader, context: bytes, data: bytes, error: Exception
) -> tuple[Row | None, UndecodedRow]:
    """The record of a message ``data`` that failed with ``error``; ``context`` is its relation message. For a key
    change whose two keys can be decoded, the departing row precedes it."""
    record = UndecodedRecord(CODEC, base64_of(data), _reason(error), base64_of(context), OPERATIONS[data[0]].value)
    record = without_bytes(record) if reader.limited else record
    try:
        change = messages.parse_row_change(data)
        before, after = reader.known_cells(change)
        old, new = _salvage(reader, before), reader.salvage(after)
    except messages.MALFORMED:
        return None, UndecodedRow(None, record)
    columns = new.columns or (old.columns if old else ()) or tuple(rule.column for rule in reader.task.rule.where)
    if columns:
        why = reason(columns, str(error), reader.schema.key) if isinstance(error, Unrepresentable) else ""
        record = replace(record, reason=why or _columns_reason(reader, columns), columns=columns, known=new.values)
    return split_undecoded(old, new, record)


def reread(record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    content = undecoded(record)
    if content is None or content.codec != CODEC:
        return [record]
    try:
        reader = RowReader(messages.parse_relation(b64decode(content.context)), table, schema)
        row = reader.read(messages.parse_row_change(b64decode(content.raw)))
    except messages.MALFORMED:
        return [record]
    return reread_records(record, row)


def _salvage(reader: RowReader, cells: list[Cell] | None) -> DecodedPart | None:
    return None if cells is None else reader.salvage(cells)


def _reason(error: Exception) -> str:
    """Texts of other exceptions may quote values."""
    return str(error) if isinstance(error, messages.MalformedMessage) else "the message cannot be decoded"


def _columns_reason(reader: RowReader, columns: tuple[str, ...]) -> str:
    listed = ", ".join(f"{name} ({reader.schema.column(name).type})" for name in columns if name in reader.schema.names)
    return f"the values are not of their column's type: {listed}"

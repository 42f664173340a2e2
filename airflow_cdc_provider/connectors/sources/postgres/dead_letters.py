"""Changes of rows that cannot be understood: what of them can be told, and how they are read once more. Pure."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import replace

from airflow_cdc_provider.connectors.rows import DecodedPart, Row, UndecodedRow, reread_records, split_undecoded
from airflow_cdc_provider.connectors.sources.postgres import messages
from airflow_cdc_provider.connectors.sources.postgres.messages import Cell
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.connectors.unrepresentable import Unrepresentable, reason
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from airflow_cdc_provider.core.table.schema import TableSchema

CODEC = "pgoutput 1"
OPERATIONS = {
    messages.INSERT: Operation.INSERT,
    messages.UPDATE: Operation.UPDATE,
    messages.DELETE: Operation.DELETE,
}


def undecoded_record(
    layout: RowReader, context: bytes, data: bytes, error: Exception
) -> tuple[Row | None, UndecodedRow]:
    """What is known of the message ``data`` that was met with ``error``; ``context`` is the message of its relation.
    First the row that left its key, where the message moved one and both keys can be read."""
    whole = UndecodedRecord(CODEC, _text(data), _reason(error), _text(context), OPERATIONS[data[0]].value)
    try:
        change = messages.parse_row_change(data)
        before, after = layout.known_cells(change)
        old, new = _salvage(layout, before), layout.salvage(after)
    except messages.MALFORMED:
        return None, UndecodedRow(None, whole)
    columns = new.columns or (old.columns if old else ()) or tuple(one.column for one in layout.task.rule.where)
    if columns:
        why = reason(columns, str(error), layout.schema.key) if isinstance(error, Unrepresentable) else ""
        whole = replace(whole, reason=why or _columns_reason(layout, columns), columns=columns, known=new.values)
    return split_undecoded(old, new, whole)


def reread(record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    what = undecoded(record)
    if what is None or what.codec != CODEC:
        return [record]
    try:
        layout = RowReader(messages.parse_relation(b64decode(what.context)), table, schema)
        row = layout.read(messages.parse_row_change(b64decode(what.raw)))
    except messages.MALFORMED:
        return [record]
    return reread_records(record, row)


def _salvage(layout: RowReader, cells: list[Cell] | None) -> DecodedPart | None:
    return None if cells is None else layout.salvage(cells)


def _reason(error: Exception) -> str:
    """Only our own words: others may quote values."""
    return str(error) if isinstance(error, messages.MalformedMessage) else "the message cannot be read"


def _columns_reason(layout: RowReader, columns: tuple[str, ...]) -> str:
    listed = ", ".join(f"{name} ({layout.schema.column(name).type})" for name in columns if name in layout.schema.names)
    return f"what came cannot be read as its column: {listed}"


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")

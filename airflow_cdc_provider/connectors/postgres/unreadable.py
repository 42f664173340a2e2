"""Changes of rows that cannot be understood: what of them can be told, and how they are read once more. Pure."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import NamedTuple

from airflow_cdc_provider.connectors.postgres import messages
from airflow_cdc_provider.connectors.postgres.messages import Cell
from airflow_cdc_provider.connectors.postgres.rows import Layout, Row, Salvage, halves
from airflow_cdc_provider.core.changes import ARRIVES, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.quarantine import Unreadable, told
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.core.tables import TableSchema

CODEC = "pgoutput 1"
OPERATIONS = {
    messages.INSERT: Operation.INSERT,
    messages.UPDATE: Operation.UPDATE,
    messages.DELETE: Operation.DELETE,
}


class PutAside(NamedTuple):
    """``key`` is None where it cannot be told."""

    key: str | None
    told: Unreadable


def put_aside(layout: Layout, context: bytes, data: bytes, error: Exception) -> tuple[Row | None, PutAside]:
    """What is known of the message ``data`` that was met with ``error``; ``context`` is the message of its relation.
    First the row that left its key, where the message moved one and both keys can be read."""
    whole = Unreadable(CODEC, _text(data), _reason(error), _text(context), OPERATIONS[data[0]].value)
    try:
        change = messages.parse_row_change(data)
        before, after = layout.known_cells(change)
        old, new = _salvage(layout, before), layout.salvage(after)
    except messages.MALFORMED:
        return None, PutAside(None, whole)
    columns = new.columns or (old.columns if old else ()) or tuple(one.column for one in layout.task.rule.where)
    if columns:
        whole = replace(whole, reason=_columns_reason(layout, columns), columns=columns, known=_values(new))
    moved = old is not None and old.key != new.key
    if not moved or new.key is None or old is None or old.key is None:
        return None, PutAside(None if moved else new.key, whole)
    gone = Row(Operation.DELETE, old.key, None, canonical(_values(old)), None, False, False, ())
    return gone, PutAside(new.key, replace(whole, op=Operation.INSERT.value))


def reread(record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
    """See ``SourceConnector.reread``."""
    what = told(record)
    if what is None or what.codec != CODEC:
        return [record]
    try:
        layout = Layout(messages.parse_relation(b64decode(what.context)), table, schema)
        row = layout.read(messages.parse_row_change(b64decode(what.raw)))
    except messages.MALFORMED:
        return [record]
    if row is None:
        return []
    if not row.moved:
        return [_as_read(record, row)]
    order = record.order_key[:-2]
    told_halves = [
        replace(_as_read(record, half), order_key=f"{order}{phase:02x}", phase=phase, link_id=order)
        for phase, half in halves(row)
    ]
    return told_halves[1:] if record.phase == ARRIVES else told_halves


def _salvage(layout: Layout, cells: list[Cell] | None) -> Salvage | None:
    return None if cells is None else layout.salvage(cells)


def _as_read(record: ChangeRecord, row: Row) -> ChangeRecord:
    return replace(
        record,
        op=row.op,
        key_before=row.key_before,
        key=row.key,
        before=row.before,
        after=row.after,
        before_complete=row.before_complete,
        after_complete=row.after_complete,
        warnings=row.warnings,
    )


def _values(salvage: Salvage) -> dict[str, object]:
    return {name: json.loads(text) for name, text in salvage.known.items()}


def _reason(error: Exception) -> str:
    """Only our own words: others may quote values."""
    return str(error) if isinstance(error, messages.MalformedMessage) else "the message cannot be read"


def _columns_reason(layout: Layout, columns: tuple[str, ...]) -> str:
    listed = ", ".join(f"{name} ({layout.schema.column(name).type})" for name in columns if name in layout.schema.names)
    return f"what came cannot be read as its column: {listed}"


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")

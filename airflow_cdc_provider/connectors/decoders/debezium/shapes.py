"""Arrow schemas for envelopes and keys of one shape, inferred from one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.shapes import column_type, count_struct_members, value_type
from airflow_cdc_provider.connectors.decoders.debezium.converters import ARROW_TIMES
from airflow_cdc_provider.connectors.decoders.debezium.source_block import PARTS
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout
from airflow_cdc_provider.core.table.schema import Kind

BLOCKS = ("before", "after", "source", "transaction")
TRANSACTION = pa.struct([("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())])
NUMBERS = frozenset({"event_serial_no", "lsn", "redo_thread", "row", "server_id", "ssn", "thread", "txId", "xmin"})
"""Fields of source blocks that are numbers or null. Other fields that are null in the message are strings."""
TIMES = frozenset(ARROW_TIMES.values())


@dataclass(frozen=True)
class MessageShape:
    """The rows and blocks of an envelope are structs."""

    envelope: pa.Schema
    key: pa.Schema

    def count_envelope_members(self, rows: pa.RecordBatch) -> int:
        """The number of members of the objects in all envelopes."""
        return len(rows) * len(self.envelope) + count_struct_members(rows)

    def count_key_members(self, rows: pa.RecordBatch) -> int:
        return len(rows) * len(self.key)


def shape_of(envelope: Mapping[str, Any], key: Mapping[str, Any], layout: TableLayout) -> MessageShape | None:
    """None for messages with arrays or other nested objects, or with a field named like a member of the envelope."""
    if any(not isinstance(envelope[part], dict | None) for part in BLOCKS):
        return None
    kinds = {column.name: column.type.kind for column in layout.schema.columns}
    converters = dict(zip(layout.schema.names, layout.arrow_converters, strict=True))
    before, after, source, transaction = (envelope[part] for part in BLOCKS)
    before, after = before or {}, after or {}
    columns = {**after, **before, **{name: value for name, value in after.items() if value is not None}}
    if any(not names.keys().isdisjoint(PARTS) for names in (columns, source, transaction or {})):
        return None
    try:
        row = pa.struct(
            [(name, _column_type(value, kinds.get(name), converters.get(name))) for name, value in columns.items()]
        )
        blocks = {
            "before": row,
            "after": row,
            "source": _block_type(source),
            "transaction": TRANSACTION if transaction is None else _block_type(transaction),
        }
        types = {name: blocks[name] if name in blocks else _field_type(value, name) for name, value in envelope.items()}
        keys = {name: row.field(name).type for name in key}
    except TypeError:
        return None
    return MessageShape(pa.schema(list(types.items())), pa.schema(list(keys.items())))


def _block_type(block: Mapping[str, Any]) -> pa.DataType:
    return pa.struct([(name, _field_type(value, name)) for name, value in block.items()])


def _column_type(value: Any, kind: Kind | None, converter: ArrowConverter | None) -> pa.DataType:
    return pa.int64() if value is None and converter in TIMES else column_type(value, kind)


def _field_type(value: Any, name: str) -> pa.DataType:
    if value is None:
        return pa.int64() if name in NUMBERS else pa.string()
    return value_type(value)

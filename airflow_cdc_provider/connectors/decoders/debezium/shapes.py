"""What the members of envelopes and keys are, as one message shows: the types that Arrow's reader is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_cdc_provider.connectors.decoders.common.column_texts import Quick
from airflow_cdc_provider.connectors.decoders.common.shapes import column_type, members_of_structs, value_type
from airflow_cdc_provider.connectors.decoders.debezium.converters import QUICK_TIMES
from airflow_cdc_provider.connectors.decoders.debezium.envelope import PARTS
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout
from airflow_cdc_provider.core.table.schema import Kind

BLOCKS = ("before", "after", "source", "transaction")
TRANSACTION = pa.struct([("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())])
NUMBERS = frozenset({"event_serial_no", "lsn", "redo_thread", "row", "server_id", "ssn", "thread", "txId", "xmin"})
"""Fields of source blocks that may be null and else are numbers; others are texts."""
TIMES = frozenset(QUICK_TIMES.values())


@dataclass(frozen=True)
class MessageShape:
    """The rows and blocks of the envelope are structs."""

    envelope: pa.Schema
    key: pa.Schema

    def members(self, rows: pa.RecordBatch) -> int:
        """How many there are in all of these envelopes."""
        return len(rows) * len(self.envelope) + members_of_structs(rows)

    def keys(self, rows: pa.RecordBatch) -> int:
        return len(rows) * len(self.key)


def shape_of(envelope: Mapping[str, Any], key: Mapping[str, Any], layout: TableLayout) -> MessageShape | None:
    """None for messages that hold lists or other objects, or a name twice that is looked for in their text."""
    if any(not isinstance(envelope[part], dict | None) for part in BLOCKS):
        return None
    kinds = {column.name: column.type.kind for column in layout.schema.columns}
    quick = dict(zip(layout.schema.names, layout.quick, strict=True))
    before, after, source, transaction = (envelope[part] for part in BLOCKS)
    before, after = before or {}, after or {}
    told = {**after, **before, **{name: one for name, one in after.items() if one is not None}}
    if any(not names.keys().isdisjoint(PARTS) for names in (told, source, transaction or {})):
        return None
    try:
        row = pa.struct([(name, _column_type(one, kinds.get(name), quick.get(name))) for name, one in told.items()])
        blocks = {
            "before": row,
            "after": row,
            "source": _block_type(source),
            "transaction": TRANSACTION if transaction is None else _block_type(transaction),
        }
        types = {name: blocks[name] if name in blocks else _type_of(one, name) for name, one in envelope.items()}
        keys = {name: row.field(name).type for name in key}
    except TypeError:
        return None
    return MessageShape(pa.schema(list(types.items())), pa.schema(list(keys.items())))


def _block_type(block: Mapping[str, Any]) -> pa.DataType:
    return pa.struct([(name, _type_of(one, name)) for name, one in block.items()])


def _column_type(value: Any, kind: Kind | None, quick: Quick | None) -> pa.DataType:
    return pa.int64() if value is None and quick in TIMES else column_type(value, kind)


def _type_of(value: Any, name: str) -> pa.DataType:
    if value is None:
        return pa.int64() if name in NUMBERS else pa.string()
    return value_type(value)

"""Events of one shape, decoded in batches: the batch variant of ``changes.ChangeDecoder``.

Supported are valid changes of rows with a key whose envelope, source block and rows have the same members with the same
types as the message of the template. All others are left to ``ChangeDecoder``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors import blocks
from airflow_cdc_provider.connectors.decoders.common.batch_json import decode_in_batches, read_objects
from airflow_cdc_provider.connectors.decoders.common.columns import (
    NotVectorizable,
    fields,
    is_number,
    is_text,
    require,
    true_rows,
)
from airflow_cdc_provider.connectors.decoders.common.message import Message, MessageColumns
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.common.times import FIRST_US, LAST_US
from airflow_cdc_provider.connectors.decoders.debezium import headers
from airflow_cdc_provider.connectors.decoders.debezium.changes import ARRIVING, DEPARTING, OPERATIONS
from airflow_cdc_provider.connectors.decoders.debezium.envelopes import ColumnEnvelopes, Envelopes, JsonEnvelopes
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.position_columns import (
    PositionColumns,
    SourceColumns,
    event_positions,
)
from airflow_cdc_provider.connectors.decoders.debezium.positions import INITIAL_MARKERS
from airflow_cdc_provider.connectors.decoders.debezium.shapes import MessageShape
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout
from airflow_cdc_provider.connectors.decoders.debezium.template_images import images_of
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

LETTERS, OPS = pa.array(list(OPERATIONS)), pa.array([op.value for op in OPERATIONS.values()])
TX_ID_FIELDS = {
    "mysql": "gtid",
    "mariadb": "gtid",
    "postgresql": "txId",
    "oracle": "txId",
    "sqlserver": "commit_lsn",
}
"""Connector → the field of its source block that identifies the transaction."""
INITIAL_TEXTS = pa.array(sorted(marker for marker in INITIAL_MARKERS if isinstance(marker, str)))
NONE = pa.scalar(None, pa.string())


class MessageText(NamedTuple):
    """``value`` and ``key``: the texts of envelope and key, without the text around the payloads."""

    message: Message
    value: bytes
    key: bytes


class TemplateEvents:
    """Decodes events of one layout and shape. ``table_fields``: the fields of the source block that name the table."""

    def __init__(
        self,
        layout: TableLayout,
        connector: str,
        table_fields: Mapping[str, str],
        placeholders: Placeholders,
        epoch: int,
        shape: MessageShape,
    ) -> None:
        self.layout = layout
        self.connector = connector
        self.epoch = epoch_prefix(epoch)
        self.placeholders = pa.array(sorted(placeholders.texts), pa.string())
        self.constant_fields = {"connector": connector, **table_fields}
        self.shape = shape

    def read(self, texts: Sequence[MessageText]) -> tuple[list[pa.RecordBatch], list[MessageText]]:
        """The columns of the change log, and the messages to be decoded one by one."""
        return decode_in_batches(texts, self._decode)

    def read_columns(self, columns: MessageColumns) -> tuple[list[pa.RecordBatch], list[int]]:
        """The columns of the change log, and the indexes of messages to be decoded one by one."""
        return decode_in_batches(range(len(columns.messages)), lambda rows: self._decode_columns(columns, rows))

    def _decode_columns(self, columns: MessageColumns, rows: Sequence[int]) -> pa.RecordBatch:
        """Raises NotVectorizable with indexes of ``rows``."""
        some = columns if len(rows) == len(columns.messages) else columns.take(rows)
        keys = pa.RecordBatch.from_struct_array(some.keys)
        return _EventBatch(self, some.messages, ColumnEnvelopes(some.values), keys).decode()

    def _decode(self, texts: Sequence[MessageText]) -> pa.RecordBatch | None:
        """None if a message has another shape. Raises NotVectorizable with indexes of texts."""
        messages, values, key_texts = zip(*texts, strict=True)
        envelopes = read_objects(values, self.shape.envelope, self.shape.count_envelope_members)
        keys = read_objects(key_texts, self.shape.key, self.shape.count_key_members)
        if envelopes is None or keys is None:
            return None
        return _EventBatch(self, messages, JsonEnvelopes(values, envelopes), keys).decode()


class _EventBatch:
    def __init__(
        self,
        template: TemplateEvents,
        messages: Sequence[Message],
        envelopes: Envelopes,
        keys: pa.RecordBatch,
    ) -> None:
        self.template, self.messages, self.envelopes, self.key = template, messages, envelopes, keys
        self.count = len(messages)
        columns = envelopes.columns
        self.before, self.after = columns.column("before"), columns.column("after")
        self.source, self.transaction = fields(columns.column("source")), fields(columns.column("transaction"))
        self.letters = columns.column("op")
        self.ops = OPS.take(pc.index_in(self.letters, LETTERS))
        self.is_delete = pc.fill_null(pc.equal(self.ops, Operation.DELETE.value), False)
        self.is_update = pc.fill_null(pc.equal(self.ops, Operation.UPDATE.value), False)

    def decode(self) -> pa.RecordBatch:
        """Raises NotVectorizable with indexes of messages."""
        self._require_valid()
        rows, template = RowPairs(self.before, self.after), self.template
        with rows.rows_as_changes():
            self._require_keys(rows)
            images = images_of(rows, template.layout, template.placeholders, self.envelopes)
        at, ordinal, phased = self._event_positions()
        keys = images.keys(template.layout.schema.key)
        new_key, old_key = keys.take(rows.after_row), keys.take(rows.before_row)
        after_complete = pc.fill_null(images.complete.take(rows.after_row), False)
        has_header = [bool(message.headers) and headers.is_key_change(message) for message in self.messages]
        is_key_change = pc.or_(pa.array(has_header, pa.bool_()), pc.invert(after_complete))
        arrives = pc.and_(pc.equal(self.ops, Operation.INSERT.value), is_key_change)
        links = pc.binary_join_element_wise(template.epoch, at, "")
        departs = self.is_delete if phased is None else pc.and_(self.is_delete, phased)
        orders = pc.binary_join_element_wise(links, ordinal, pc.if_else(departs, DEPARTING, ARRIVING), "")
        columns = {
            **blocks.COMMON,
            "table": template.layout.table,
            "op": self.ops,
            "order_key": orders,
            "schema_id": template.layout.images.schema_id,
            "key_before": pc.if_else(self.is_delete, old_key, pc.if_else(self.is_update, new_key, NONE)),
            "key": pc.if_else(self.is_delete, NONE, new_key),
            "before": images.images.take(rows.before_row),
            "after": images.images.take(rows.after_row),
            "before_complete": pc.fill_null(images.complete.take(rows.before_row), False),
            "after_complete": after_complete,
            "phase": pc.if_else(self.is_delete, _phase(DEPARTS), pc.if_else(arrives, _phase(ARRIVES), _phase(None))),
            "link_id": pc.if_else(pc.or_(self.is_delete, arrives), links, NONE),
            "row_id": self._row_id(),
            "tx_id": self._tx_id(),
            "tx_seq": self._total_order,
            "commit_ts": self._commit_time(),
            "position": self.envelopes.without_rows(),
            "event_id": pc.binary_join_element_wise(orders, pc.if_else(self.is_delete, old_key, new_key), ""),
            "snapshot": self._snapshot,
        }
        return blocks.log_batch(columns, self.count)

    def _require_valid(self) -> None:
        """Requires a known operation with its images, of the table of the template."""
        before, after = self.before.is_valid(), self.after.is_valid()
        valid_delete = pc.and_(before, pc.invert(after))
        valid_change = pc.and_(after, pc.or_(self.is_update, pc.invert(before)))
        require(pc.and_(self.ops.is_valid(), pc.if_else(self.is_delete, valid_delete, valid_change)))
        for name, expected in self.template.constant_fields.items():
            values = self.source.get(name)
            require(pc.equal(values, expected) if is_text(values) else pa.repeat(False, self.count))

    def _require_keys(self, rows: RowPairs) -> None:
        """Requires that the message key equals the key of the row. Raises NotVectorizable with rows."""
        row_of = pc.if_else(self.is_delete, rows.before_row, rows.after_row)
        for name in self.key.schema.names:
            same = pc.fill_null(pc.equal(self.key.column(name), rows.columns[name].take(row_of)), False)
            if len(changes := true_rows(pc.invert(same))):
                raise NotVectorizable({row_of[int(change)].as_py() for change in changes})

    def _event_positions(self) -> PositionColumns:
        offsets = [message.order for message in self.messages]
        columns = SourceColumns(self.source, self._total_order, self._snapshot, offsets)
        return event_positions(self.template.connector, columns)

    @cached_property
    def _total_order(self) -> pa.Array:
        order = self.transaction.get("total_order")
        if order is None:
            return pa.nulls(self.count, pa.int64())
        require(pc.fill_null(pc.greater_equal(order, 0), True) if is_number(order) else pa.repeat(False, self.count))
        return order

    @cached_property
    def _snapshot(self) -> pa.StringArray:
        marker, is_read = self.source.get("snapshot"), pc.equal(self.letters, "r")
        if marker is not None and pa.types.is_boolean(marker.type):
            return pc.if_else(pc.or_(is_read, pc.fill_null(marker, False)), "initial", "none")
        if not is_text(marker):
            return pc.if_else(is_read, "initial", "none")
        snapshot = pc.if_else(pc.or_(is_read, pc.is_in(marker, INITIAL_TEXTS)), "initial", "none")
        return pc.if_else(pc.fill_null(pc.equal(marker, "incremental"), False), "incremental", snapshot)

    def _tx_id(self) -> pa.StringArray:
        tx_id, fallback = self.transaction.get("id"), self._text_of(TX_ID_FIELDS[self.template.connector])
        if not is_text(tx_id):
            return fallback
        if self.template.connector == "postgresql":
            tx_id = pc.struct_field(pc.extract_regex(tx_id, "(?s)^(?P<id>[^:]*)"), "id")
        return pc.coalesce(tx_id, fallback)

    def _row_id(self) -> pa.StringArray | None:
        row_id = self.source.get("row_id") if self.template.connector == "oracle" else None
        return row_id if is_text(row_id) else None

    def _text_of(self, name: str) -> pa.StringArray:
        """A string or number of the source block, as text."""
        values = self.source.get(name)
        if values is None:
            return pa.nulls(self.count, pa.string())
        require(pa.repeat(is_text(values) or is_number(values), self.count))
        return values.cast(pa.string())

    def _commit_time(self) -> pa.Array:
        """Raises NotVectorizable for times outside the years 1 to 9999."""
        candidates = [("ts_us", 1), ("ts_ms", 1000)]
        if self.template.connector == "oracle":
            candidates.insert(0, ("commit_ts_ms", 1000))
        times = []
        for name, per_us in candidates:
            numbers = self.source.get(name)
            if is_number(numbers):
                in_calendar = pc.and_(
                    pc.greater_equal(numbers, -(-FIRST_US // per_us)), pc.less_equal(numbers, LAST_US // per_us)
                )
                require(pc.fill_null(in_calendar, True))
                times.append(pc.multiply(numbers, per_us))
        us = pc.coalesce(*times) if times else pa.nulls(self.count, pa.int64())
        return us.cast(pa.timestamp("us", tz="UTC"))


def _phase(value: int | None) -> pa.Scalar:
    return pa.scalar(value, pa.int8())

"""Changes of a feed with whole rows, decoded in batches: the batch variant of ``json_changes.YdbJson``.

Supported are valid changes with a virtual timestamp that erase a row or have its image, with all columns in each image.
All others are left to ``YdbJson``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors import blocks
from airflow_cdc_provider.connectors.decoders.common.batch_json import decode_in_batches, read_objects
from airflow_cdc_provider.connectors.decoders.common.columns import require
from airflow_cdc_provider.connectors.decoders.common.image_columns import ImageColumns, json_texts, require_true_zeros
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.common.shapes import column_type, count_struct_members
from airflow_cdc_provider.connectors.decoders.common.times import LAST_US
from airflow_cdc_provider.connectors.decoders.ydb.json_changes import KINDS
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode
from airflow_cdc_provider.connectors.decoders.ydb.positions import DELETED, PRESENT
from airflow_cdc_provider.connectors.decoders.ydb.types import arrow_converter
from airflow_cdc_provider.connectors.json_columns import hex_digits
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

ERASE, UPDATE, RESET = "erase", "update", "reset"
EMPTY = pa.struct([])
NONE = pa.scalar(None, pa.string())
LAST_MS = LAST_US // 1000


def schema_of(value: Mapping[str, Any], images: RowImages) -> pa.Schema | None:
    """The Arrow schema of messages like ``value``; None if they are not supported."""
    row = value.get("newImage") or value.get("oldImage")
    key, others = value.get("key"), set(images.schema.names) - set(images.schema.key)
    if (
        not images.as_in_source
        or not isinstance(row, dict)
        or not isinstance(key, list)
        or len(key) != len(images.schema.key)
    ):
        return None
    if not others <= row.keys() or not row.keys().isdisjoint(images.schema.key):
        return None
    kinds = {column.name: column.type.kind for column in images.schema.columns}
    try:
        image = pa.struct([(name, column_type(item, kinds.get(name))) for name, item in row.items()])
        key_types = {column_type(item, kinds[name]) for name, item in zip(images.schema.key, key, strict=True)}
    except TypeError:
        return None
    if len(key_types) != 1:  # an Arrow list has items of one type
        return None
    operations = [(kind, EMPTY) for kind in KINDS]
    return pa.schema(
        [
            ("key", pa.list_(*key_types)),
            *operations,
            ("newImage", image),
            ("oldImage", image),
            ("ts", pa.list_(pa.int64())),
        ]
    )


class TemplateChanges:
    def __init__(self, table: str, images: RowImages, mode: FeedMode, epoch: int, schema: pa.Schema) -> None:
        self.table = table
        self._images = images
        self._mode = mode
        self._epoch = epoch_prefix(epoch)
        self._schema = schema

    def read(self, messages: Sequence[Message]) -> tuple[list[pa.RecordBatch], list[Message]]:
        """The columns of the change log, and the messages to be decoded one by one."""
        return decode_in_batches(messages, self._decode)

    def _decode(self, messages: Sequence[Message]) -> pa.RecordBatch | None:
        """None if a message has another shape. Raises NotVectorizable with indexes of messages."""
        values = [message.value or b"" for message in messages]
        records = read_objects(values, self._schema, _count_members)
        if records is None:
            return None
        before, after = records.column("oldImage"), records.column("newImage")
        erased, had_row = records.column(ERASE).is_valid(), before.is_valid()
        written = pc.xor(records.column(UPDATE).is_valid(), records.column(RESET).is_valid())
        require(pc.and_(pc.xor(erased, written), pc.equal(written, after.is_valid())))
        require(pc.or_(written, pc.invert(records.column(UPDATE).is_valid())))
        keys = self._keys(records.column("key"))
        rows = RowPairs(before, after)
        with rows.rows_as_changes():
            for column in rows.columns.values():
                require_true_zeros(column, values, rows.change_of)
            images = self._images_of(rows, keys)
        key = ImageColumns(keys, {}).keys(self._images.schema.key)
        new = Operation.INSERT if self._mode is FeedMode.NEW_AND_OLD_IMAGES else Operation.UPSERT
        ops = pc.if_else(erased, Operation.DELETE.value, pc.if_else(had_row, Operation.UPDATE.value, new.value))
        offsets = pa.array([message.offset for message in messages], pa.int64())
        by_offset = [not message.by_line for message in messages]
        channels = pa.array([message.channel for message in messages], pa.string())
        columns = {
            **blocks.COMMON,
            **self._timestamps(records.column("ts"), offsets, by_offset, erased),
            "table": self.table,
            "op": ops,
            "schema_id": self._images.schema_id,
            "key_before": pc.if_else(pc.or_(erased, had_row), key, NONE),
            "key": pc.if_else(erased, NONE, key),
            "before": images.images.take(rows.before_row),
            "after": images.images.take(rows.after_row),
            "before_complete": had_row,
            "after_complete": after.is_valid(),
            "event_id": pc.binary_join_element_wise(channels, offsets.cast(pa.string()), ":"),
            "position": _positions(records.column("ts"), messages, offsets),
        }
        return blocks.log_batch(columns, len(messages))

    def _keys(self, keys: pa.ListArray) -> dict[str, pa.StringArray]:
        """The texts of the key columns."""
        schema = self._images.schema
        require(pc.fill_null(pc.equal(pc.list_value_length(keys), len(schema.key)), False))
        return {name: self._texts(name, pc.list_element(keys, index)) for index, name in enumerate(schema.key)}

    def _images_of(self, rows: RowPairs, keys: Mapping[str, pa.StringArray]) -> ImageColumns:
        change_of = pa.array(rows.change_of)
        texts = {
            name: keys[name].take(change_of) if name in keys else self._texts(name, rows.columns[name])
            for name in self._images.schema.names
        }
        return ImageColumns(texts, {})

    def _texts(self, name: str, values: pa.Array) -> pa.StringArray:
        column = self._images.schema.column(name)
        return json_texts(values, self._images.converters[name], arrow_converter(column), self._images.warnings)

    def _timestamps(
        self, ts: pa.ListArray, offsets: pa.Array, by_offset: Sequence[bool], erased: pa.BooleanArray
    ) -> dict[str, Any]:
        """``by_offset``: whether the offset orders the message."""
        require(pc.fill_null(pc.equal(pc.list_value_length(ts), 2), False))
        step, transaction = pc.list_element(ts, 0), pc.list_element(ts, 1)
        for number in (step, transaction):
            require(pc.fill_null(pc.greater_equal(number, 0), False))
        require(pc.less_equal(step, LAST_MS))
        is_known = pc.greater(step, 0)
        require(pc.or_(is_known, pa.array(by_offset)))
        digits = [hex_digits(number, 16) for number in (step, transaction, offsets)]
        orders = pc.binary_join_element_wise(self._epoch, *digits, pc.if_else(erased, DELETED, PRESENT), "")
        tx_ids = pc.binary_join_element_wise(step.cast(pa.string()), transaction.cast(pa.string()), ":")
        commit = pc.if_else(is_known, pc.multiply(step, 1000), pa.scalar(None, pa.int64()))
        return {
            "order_key": orders,
            "tx_id": pc.if_else(is_known, tx_ids, NONE),
            "commit_ts": commit.cast(pa.timestamp("us", tz="UTC")),
        }


def _positions(ts: pa.ListArray, messages: Sequence[Message], offsets: pa.Array) -> pa.StringArray:
    """In the form of ``records.RowChange``."""
    channels = pa.array([encode_basestring(message.channel) for message in messages], pa.string())
    step, transaction = (pc.list_element(ts, index).cast(pa.string()) for index in (0, 1))
    return pc.binary_join_element_wise(
        '{"ts":[', step, ",", transaction, '],"channel":', channels, ',"offset":', offsets.cast(pa.string()), "}", ""
    )


def _count_members(records: pa.RecordBatch) -> int:
    members: int = sum(records.num_rows - column.null_count for column in records.columns)
    return members + count_struct_members(records)

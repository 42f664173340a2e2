"""Changes of one feed that tell whole rows, thousands at once: what ``json_changes.JsonForm`` says one by one.

Plain is an erased row, or one with its image; all columns in every image; a virtual timestamp; nothing wrong. Whatever
else, rare or damaged, is left to ``JsonForm``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors import blocks
from airflow_cdc_provider.connectors.decoders.common.batch_json import in_pieces, read_objects
from airflow_cdc_provider.connectors.decoders.common.columns import require
from airflow_cdc_provider.connectors.decoders.common.image_columns import ImageColumns, json_texts, require_true_zeros
from airflow_cdc_provider.connectors.decoders.common.images import RowImages
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.common.shapes import column_type, members_of_structs
from airflow_cdc_provider.connectors.decoders.common.times import LAST_US
from airflow_cdc_provider.connectors.decoders.ydb.json_changes import KINDS
from airflow_cdc_provider.connectors.decoders.ydb.options import FeedMode
from airflow_cdc_provider.connectors.decoders.ydb.positions import GONE, THERE
from airflow_cdc_provider.connectors.decoders.ydb.types import quick_of
from airflow_cdc_provider.connectors.json_columns import hex_digits
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

ERASE, UPDATE, RESET = "erase", "update", "reset"
EMPTY = pa.struct([])
NONE = pa.scalar(None, pa.string())
LAST_MS = LAST_US // 1000


def schema_of(value: Mapping[str, Any], images: RowImages) -> pa.Schema | None:
    """Of records like this one; None for such as are not plain."""
    row = value.get("newImage") or value.get("oldImage")
    key, others = value.get("key"), set(images.schema.names) - set(images.schema.key)
    if (
        not images.as_told
        or not isinstance(row, dict)
        or not isinstance(key, list)
        or len(key) != len(images.schema.key)
    ):
        return None
    if not others <= row.keys() or not row.keys().isdisjoint(images.schema.key):
        return None
    kinds = {column.name: column.type.kind for column in images.schema.columns}
    try:
        image = pa.struct([(name, column_type(one, kinds.get(name))) for name, one in row.items()])
        parts = {column_type(one, kinds[name]) for name, one in zip(images.schema.key, key, strict=True)}
    except TypeError:
        return None
    if len(parts) != 1:  # a list of values of several types is none to Arrow
        return None
    kinds_told = [(kind, EMPTY) for kind in KINDS]
    return pa.schema(
        [("key", pa.list_(*parts)), *kinds_told, ("newImage", image), ("oldImage", image), ("ts", pa.list_(pa.int64()))]
    )


class TemplateChanges:
    def __init__(self, table: str, images: RowImages, mode: FeedMode, epoch: int, schema: pa.Schema) -> None:
        self.table = table
        self._images = images
        self._mode = mode
        self._epoch = epoch_prefix(epoch)
        self._schema = schema

    def read(self, messages: Sequence[Message]) -> tuple[list[pa.RecordBatch], list[Message]]:
        """The columns of the change log for the plain ones, and the others."""
        return in_pieces(messages, self._told)

    def _told(self, messages: Sequence[Message]) -> pa.RecordBatch | None:
        """None where one is of another shape. Raises NotVectorizable, with places of messages."""
        values = [one.value or b"" for one in messages]
        records = read_objects(values, self._schema, _members)
        if records is None:
            return None
        before, after = records.column("oldImage"), records.column("newImage")
        erased, had_row = records.column(ERASE).is_valid(), before.is_valid()
        named = pc.xor(records.column(UPDATE).is_valid(), records.column(RESET).is_valid())
        require(pc.and_(pc.xor(erased, named), pc.equal(named, after.is_valid())))
        require(pc.or_(named, pc.invert(records.column(UPDATE).is_valid())))
        keys = self._keys(records.column("key"))
        rows = RowPairs(before, after)
        with rows.odd_changes():
            for column in rows.columns.values():
                require_true_zeros(column, values, rows.change_of)
            images = self._images_of(rows, keys)
        key = ImageColumns(keys, {}).keys(self._images.schema.key)
        new = Operation.INSERT if self._mode is FeedMode.NEW_AND_OLD_IMAGES else Operation.UPSERT
        ops = pc.if_else(erased, Operation.DELETE.value, pc.if_else(had_row, Operation.UPDATE.value, new.value))
        offsets = pa.array([one.offset for one in messages], pa.int64())
        channels = pa.array([one.channel for one in messages], pa.string())
        told = {
            **blocks.COMMON,
            **self._moments(records.column("ts"), offsets, erased),
            "table": self.table,
            "op": ops,
            "schema_id": self._images.schema_id,
            "key_before": pc.if_else(pc.or_(erased, had_row), key, NONE),
            "key": pc.if_else(erased, NONE, key),
            "before": images.images.take(rows.at_before),
            "after": images.images.take(rows.at_after),
            "before_complete": had_row,
            "after_complete": after.is_valid(),
            "event_id": pc.binary_join_element_wise(channels, offsets.cast(pa.string()), ":"),
            "position": _positions(records.column("ts"), messages, offsets),
        }
        return blocks.log_batch(told, len(messages))

    def _keys(self, told: pa.ListArray) -> dict[str, pa.StringArray]:
        """The texts of the key's columns."""
        schema = self._images.schema
        require(pc.fill_null(pc.equal(pc.list_value_length(told), len(schema.key)), False))
        return {name: self._texts(name, pc.list_element(told, place)) for place, name in enumerate(schema.key)}

    def _images_of(self, rows: RowPairs, keys: Mapping[str, pa.StringArray]) -> ImageColumns:
        change_of = pa.array(rows.change_of)
        texts = {
            name: keys[name].take(change_of) if name in keys else self._texts(name, rows.columns[name])
            for name in self._images.schema.names
        }
        return ImageColumns(texts, {})

    def _texts(self, name: str, values: pa.Array) -> pa.StringArray:
        column = self._images.schema.column(name)
        return json_texts(values, self._images.converters[name], quick_of(column), self._images.warnings)

    def _moments(self, told: pa.ListArray, offsets: pa.Array, erased: pa.BooleanArray) -> dict[str, Any]:
        require(pc.fill_null(pc.equal(pc.list_value_length(told), 2), False))
        step, transaction = pc.list_element(told, 0), pc.list_element(told, 1)
        for number in (step, transaction):
            require(pc.fill_null(pc.greater_equal(number, 0), False))
        require(pc.less_equal(step, LAST_MS))
        there = pc.greater(step, 0)
        digits = [hex_digits(one, 16) for one in (step, transaction, offsets)]
        orders = pc.binary_join_element_wise(self._epoch, *digits, pc.if_else(erased, GONE, THERE), "")
        names = pc.binary_join_element_wise(step.cast(pa.string()), transaction.cast(pa.string()), ":")
        commit = pc.if_else(there, pc.multiply(step, 1000), pa.scalar(None, pa.int64()))
        return {
            "order_key": orders,
            "tx_id": pc.if_else(there, names, NONE),
            "commit_ts": commit.cast(pa.timestamp("us", tz="UTC")),
        }


def _positions(told: pa.ListArray, messages: Sequence[Message], offsets: pa.Array) -> pa.StringArray:
    """As ``records.Change`` writes them."""
    channels = pa.array([encode_basestring(one.channel) for one in messages], pa.string())
    step, transaction = (pc.list_element(told, place).cast(pa.string()) for place in (0, 1))
    return pc.binary_join_element_wise(
        '{"ts":[', step, ",", transaction, '],"channel":', channels, ',"offset":', offsets.cast(pa.string()), "}", ""
    )


def _members(records: pa.RecordBatch) -> int:
    there: int = sum(records.num_rows - column.null_count for column in records.columns)
    return there + members_of_structs(records)

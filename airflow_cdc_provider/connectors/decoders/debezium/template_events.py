"""Events that look alike, thousands at once: what ``changes.Changes`` says one by one, for those that are plain.

Plain is a change of a row with a key, whose envelope, source block and rows have the members that an event before had,
of the same types, and nothing wrong. Whatever else, rare or damaged, is left to ``Changes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors import blocks
from airflow_cdc_provider.connectors.decoders.common.batch_json import in_pieces, read_objects
from airflow_cdc_provider.connectors.decoders.common.columns import (
    NotVectorizable,
    fields,
    is_number,
    is_text,
    require,
    true_rows,
)
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.common.times import FIRST_US, LAST_US
from airflow_cdc_provider.connectors.decoders.debezium import headers
from airflow_cdc_provider.connectors.decoders.debezium.changes import ARRIVING, DEPARTING, OPERATIONS
from airflow_cdc_provider.connectors.decoders.debezium.envelope import AFTER, BEFORE, SOURCE
from airflow_cdc_provider.connectors.decoders.debezium.placeholders import Placeholders
from airflow_cdc_provider.connectors.decoders.debezium.position_columns import SourceColumns, event_positions
from airflow_cdc_provider.connectors.decoders.debezium.positions import INITIAL
from airflow_cdc_provider.connectors.decoders.debezium.shapes import MessageShape
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout
from airflow_cdc_provider.connectors.decoders.debezium.template_images import images_of
from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.log.positions import epoch_prefix

LETTERS, OPS = pa.array(list(OPERATIONS)), pa.array([op.value for op in OPERATIONS.values()])
BESIDE_TRANSACTION = {
    "mysql": "gtid",
    "mariadb": "gtid",
    "postgresql": "txId",
    "oracle": "txId",
    "sqlserver": "commit_lsn",
}
"""Connector -> the field of its source block that names the transaction, too."""
INITIALS = pa.array(sorted(one for one in INITIAL if isinstance(one, str)))
NONE = pa.scalar(None, pa.string())


class Text(NamedTuple):
    """``value`` and ``key``: the texts of envelope and key, without what stands around them."""

    message: Message
    value: bytes
    key: bytes


class TemplateEvents:
    """Those of one layout and shape. ``named``: the fields of the source block that name the table."""

    def __init__(
        self,
        layout: TableLayout,
        connector: str,
        named: Mapping[str, str],
        placeholders: Placeholders,
        epoch: int,
        shape: MessageShape,
    ) -> None:
        self.layout = layout
        self.connector = connector
        self.epoch = epoch_prefix(epoch)
        self.placeholders = pa.array(sorted(placeholders.texts), pa.string())
        self.is_named = {"connector": connector, **named}
        self.shape = shape

    def read(self, texts: Sequence[Text]) -> tuple[list[pa.RecordBatch], list[Text]]:
        """The columns of the change log for the plain ones, and the others."""
        return in_pieces(texts, self._told)

    def _told(self, texts: Sequence[Text]) -> pa.RecordBatch | None:
        """None where one is of another shape. Raises NotVectorizable, with places of texts."""
        messages, values, keys = zip(*texts, strict=True)
        envelopes = read_objects(values, self.shape.envelope, self.shape.members)
        told_keys = read_objects(keys, self.shape.key, self.shape.keys)
        if envelopes is None or told_keys is None:
            return None
        return _Events(self, messages, values, envelopes, told_keys).told()


class _Events:
    def __init__(
        self,
        of: TemplateEvents,
        messages: Sequence[Message],
        values: Sequence[bytes],
        envelopes: pa.RecordBatch,
        keys: pa.RecordBatch,
    ) -> None:
        self.of, self.messages, self.values, self.key = of, messages, values, keys
        self.count = len(messages)
        self.before, self.after = envelopes.column("before"), envelopes.column("after")
        self.source, self.transaction = fields(envelopes.column("source")), fields(envelopes.column("transaction"))
        self.letters = envelopes.column("op")
        self.ops = OPS.take(pc.index_in(self.letters, LETTERS))
        self.gone = pc.fill_null(pc.equal(self.ops, Operation.DELETE.value), False)
        self.updated = pc.fill_null(pc.equal(self.ops, Operation.UPDATE.value), False)

    def told(self) -> pa.RecordBatch:
        """Raises NotVectorizable, with places of messages."""
        self._require_whole()
        rows, of = RowPairs(self.before, self.after), self.of
        with rows.odd_changes():
            self._require_keys(rows)
            images = images_of(rows, of.layout, of.placeholders, self.values)
        at, ordinal = self._places()
        keys = images.keys(of.layout.schema.key)
        key, then = keys.take(rows.at_after), keys.take(rows.at_before)
        whole = pc.fill_null(images.complete.take(rows.at_after), False)
        moved = pa.array([bool(one.headers) and headers.moved(one) for one in self.messages], pa.bool_())
        came = pc.and_(pc.equal(self.ops, Operation.INSERT.value), pc.or_(moved, pc.invert(whole)))
        links = pc.binary_join_element_wise(of.epoch, at, "")
        orders = pc.binary_join_element_wise(links, ordinal, pc.if_else(self.gone, DEPARTING, ARRIVING), "")
        told = {
            **blocks.COMMON,
            "table": of.layout.table,
            "op": self.ops,
            "order_key": orders,
            "schema_id": of.layout.images.schema_id,
            "key_before": pc.if_else(self.gone, then, pc.if_else(self.updated, key, NONE)),
            "key": pc.if_else(self.gone, NONE, key),
            "before": images.images.take(rows.at_before),
            "after": images.images.take(rows.at_after),
            "before_complete": pc.fill_null(images.complete.take(rows.at_before), False),
            "after_complete": whole,
            "phase": pc.if_else(self.gone, _phase(DEPARTS), pc.if_else(came, _phase(ARRIVES), _phase(None))),
            "link_id": pc.if_else(pc.or_(self.gone, came), links, NONE),
            "row_id": self._row_id(),
            "tx_id": self._tx_id(),
            "tx_seq": self._total_order,
            "commit_ts": self._committed(),
            "position": self._positions(),
            "event_id": pc.binary_join_element_wise(orders, pc.if_else(self.gone, then, key), ""),
            "snapshot": self._snapshot,
        }
        return blocks.log_batch(told, self.count)

    def _require_whole(self) -> None:
        """An operation that we know, with the images that it has; of our table."""
        before, after = self.before.is_valid(), self.after.is_valid()
        goes = pc.and_(before, pc.invert(after))
        comes = pc.and_(after, pc.or_(self.updated, pc.invert(before)))
        require(pc.and_(self.ops.is_valid(), pc.if_else(self.gone, goes, comes)))
        for name, wanted in self.of.is_named.items():
            found = self.source.get(name)
            require(pc.equal(found, wanted) if is_text(found) else pa.repeat(False, self.count))

    def _require_keys(self, rows: RowPairs) -> None:
        """The key of the message is that of its row. Raises NotVectorizable, with rows."""
        own = pc.if_else(self.gone, rows.at_before, rows.at_after)
        for name in self.key.schema.names:
            same = pc.fill_null(pc.equal(self.key.column(name), rows.columns[name].take(own)), False)
            if len(odd := true_rows(pc.invert(same))):
                raise NotVectorizable({own[int(change)].as_py() for change in odd})

    def _places(self) -> tuple[pa.StringArray, pa.StringArray]:
        offsets = [one.offset for one in self.messages]
        return event_positions(
            self.of.connector, SourceColumns(self.source, self._total_order, self._snapshot, offsets)
        )

    @cached_property
    def _total_order(self) -> pa.Array:
        told = self.transaction.get("total_order")
        if told is None:
            return pa.nulls(self.count, pa.int64())
        require(pc.fill_null(pc.greater_equal(told, 0), True) if is_number(told) else pa.repeat(False, self.count))
        return told

    @cached_property
    def _snapshot(self) -> pa.StringArray:
        marker, read = self.source.get("snapshot"), pc.equal(self.letters, "r")
        if marker is not None and pa.types.is_boolean(marker.type):
            return pc.if_else(pc.or_(read, pc.fill_null(marker, False)), "initial", "none")
        if not is_text(marker):
            return pc.if_else(read, "initial", "none")
        told = pc.if_else(pc.or_(read, pc.is_in(marker, INITIALS)), "initial", "none")
        return pc.if_else(pc.fill_null(pc.equal(marker, "incremental"), False), "incremental", told)

    def _tx_id(self) -> pa.StringArray:
        told, beside = self.transaction.get("id"), self._text_of(BESIDE_TRANSACTION[self.of.connector])
        if not is_text(told):
            return beside
        if self.of.connector == "postgresql":
            told = pc.struct_field(pc.extract_regex(told, "(?s)^(?P<id>[^:]*)"), "id")
        return pc.coalesce(told, beside)

    def _row_id(self) -> pa.StringArray | None:
        told = self.source.get("row_id") if self.of.connector == "oracle" else None
        return told if is_text(told) else None

    def _text_of(self, name: str) -> pa.StringArray:
        """A field of the source block, also where it is a number."""
        told = self.source.get(name)
        if told is None:
            return pa.nulls(self.count, pa.string())
        require(pa.repeat(is_text(told) or is_number(told), self.count))
        return told.cast(pa.string())

    def _committed(self) -> pa.Array:
        """What no calendar has is left to who reads one by one."""
        told = [("ts_us", 1), ("ts_ms", 1000)]
        if self.of.connector == "oracle":
            told.insert(0, ("commit_ts_ms", 1000))
        found = []
        for name, per_us in told:
            numbers = self.source.get(name)
            if is_number(numbers):
                inside = pc.and_(
                    pc.greater_equal(numbers, -(-FIRST_US // per_us)), pc.less_equal(numbers, LAST_US // per_us)
                )
                require(pc.fill_null(inside, True))
                found.append(pc.multiply(numbers, per_us))
        us = pc.coalesce(*found) if found else pa.nulls(self.count, pa.int64())
        return us.cast(pa.timestamp("us", tz="UTC"))

    def _positions(self) -> pa.StringArray:
        """Envelopes without their rows, which stand before all else."""
        texts = pa.array(self.values, pa.binary())
        at = pc.find_substring(texts, SOURCE.encode())
        require(pc.and_(*(pc.less(pc.find_substring(texts, one.encode()), at) for one in (BEFORE, AFTER))))
        behind_rows = [text[start - 1 :] for text, start in zip(self.values, at.to_pylist(), strict=True)]
        return pc.binary_replace_slice(pa.array(behind_rows, pa.binary()), 0, 1, "{").cast(pa.string())


def _phase(value: int | None) -> pa.Scalar:
    return pa.scalar(value, pa.int8())

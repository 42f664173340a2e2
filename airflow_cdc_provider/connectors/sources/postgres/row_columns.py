"""Row changes of one relation, thousands at once: what ``rows.RowReader`` says one by one, for those that are plain.

Plain is an insert, an update that names no old row or the whole old row under the same key, a delete; with every cell
there. Whatever else it may be, damaged or rare, is left to the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.json_columns import arrays, objects
from airflow_cdc_provider.connectors.sources.postgres.cell_columns import (
    LONG_MOMENT,
    Bytes,
    Cells,
    Flags,
    NotVectorizable,
    Places,
    json_texts,
)
from airflow_cdc_provider.connectors.sources.postgres.messages import DELETE, INSERT, KEY, NEW, OLD, UPDATE
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.core.log.change_records import Operation

VALUE, NULL = b"tn"
IMAGE = 5
"""Where the letter of a row change's first image stands: behind its own letter and the oid."""

ROW_COLUMNS = ("op", "key_before", "key", "before", "after", "before_complete", "after_complete")


@dataclass(frozen=True)
class VectorizedRows:
    """``rows``: ROW_COLUMNS of the plain messages, in order. ``plain`` says which these are."""

    rows: pa.RecordBatch
    plain: Flags


def vectorized_rows(layout: RowReader, messages: Sequence[bytes]) -> VectorizedRows | None:
    """None where none of the messages is plain."""
    read = _Reading(layout, messages)
    plain, parts, order = np.zeros(len(messages), bool), [], []
    for form in _FORMS:
        among = np.flatnonzero(read.is_form(form))
        rows, places = (read.rows(form, among) if len(among) else None) or (None, among)
        if rows is not None and rows.num_rows:
            plain[places] = True
            parts.append(rows)
            order.append(places)
    if not parts:
        return None
    if len(parts) == 1:
        return VectorizedRows(parts[0], plain)
    table = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return VectorizedRows(table.take(pa.array(np.argsort(np.concatenate(order)))), plain)


@dataclass(frozen=True)
class _Form:
    """What a message is by its letter and that of its first image."""

    letter: int
    image: int
    op: Operation


_FORMS = (
    _Form(INSERT, NEW, Operation.INSERT),
    _Form(UPDATE, NEW, Operation.UPDATE),
    _Form(UPDATE, OLD, Operation.UPDATE),
    _Form(DELETE, KEY, Operation.DELETE),
    _Form(DELETE, OLD, Operation.DELETE),
)


class _Reading:
    def __init__(self, layout: RowReader, messages: Sequence[bytes]) -> None:
        self.layout = layout
        # Headers and times are looked at beyond the end of the last message; what is found there does not count.
        self.buffer: Bytes = np.frombuffer(b"".join([*messages, bytes(2 * LONG_MOMENT)]), np.uint8)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        self.ends: Places = np.cumsum(lengths)
        self.starts: Places = self.ends - lengths
        # Big-endian numbers of four bytes, at every byte.
        self.numbers: npt.NDArray[np.uint32] = np.ndarray(
            (len(self.buffer) - 3,), np.dtype(">u4"), self.buffer, strides=(1,)
        )

    def is_form(self, form: _Form) -> Flags:
        letters, images = self.buffer[self.starts], self.buffer[self.starts + IMAGE]
        found: Flags = (self.ends - self.starts > IMAGE) & (letters == form.letter) & (images == form.image)
        return found

    def rows(self, form: _Form, among: Places) -> tuple[pa.RecordBatch, Places] | None:
        """The rows of the plain messages among these, and which they are. None where there are none."""
        at, ends = self.starts[among] + IMAGE + 1, self.ends[among]
        plain = np.ones(len(among), bool)
        images = []
        if form.image != NEW:
            image, at = self._tuple(at, plain)
            images.append(image)
        if form.letter != DELETE:
            if images:
                plain &= self.buffer[np.minimum(at, ends)] == NEW
                at = at + 1
            image, at = self._tuple(at, plain)
            images.append(image)
        plain &= at == ends
        if not plain.any():
            return None
        try:
            return self._told(form, [_only(image, plain) for image in images], among[plain])
        except NotVectorizable:
            return None

    def _tuple(self, at: Places, plain: Flags) -> tuple[list[Cells], Places]:
        """One image: its cells, and where it ends. Clears ``plain`` where it is none, or lacks a cell."""
        last = len(self.numbers) - LONG_MOMENT
        at = np.minimum(at, last)
        plain &= self.numbers[at] >> 16 == self.layout.width
        at = at + 2
        cells = []
        for _ in range(self.layout.width):
            at = np.minimum(at, last)
            kind = self.buffer[at]
            null = kind == NULL
            plain &= null | (kind == VALUE)
            length = np.where(null, 0, self.numbers[at + 1].astype(np.int64))
            at = at + np.where(null, 1, 5)
            cells.append(Cells(self.buffer, at, length, null))
            at = at + length
        return cells, at

    def _told(self, form: _Form, images: list[list[Cells]], places: Places) -> tuple[pa.RecordBatch, Places]:
        layout, none = self.layout, pa.nulls(len(places), pa.string())
        key_before = key = before = after = none
        before_complete = after_complete = False
        if form.image != NEW:
            names = layout.schema.names if form.image == OLD else layout.identity_names
            values = self._values(images[0], names)
            before, before_complete = _image(names, values), len(names) == len(layout.schema.names)
            key_before = _key(layout, values, none)
        if form.letter != DELETE:
            values = self._values(images[-1], layout.schema.names)
            after, after_complete = _image(layout.schema.names, values), True
            key = _key(layout, values, none)
        if form.letter == UPDATE and form.image == NEW:
            key_before = key
        columns = [
            pa.repeat(pa.scalar(form.op.value), len(places)),
            key_before,
            key,
            before,
            after,
            pa.repeat(pa.scalar(before_complete), len(places)),
            pa.repeat(pa.scalar(after_complete), len(places)),
        ]
        rows = pa.RecordBatch.from_arrays(columns, ROW_COLUMNS)
        if form.letter == UPDATE and form.image == OLD and layout.schema.key and not key_before.equals(key):
            stayed = pc.equal(key_before, key)
            return rows.filter(stayed), places[stayed.to_numpy(zero_copy_only=False)]
        return rows, places

    def _values(self, cells: list[Cells], names: Sequence[str]) -> dict[str, pa.StringArray]:
        layout = self.layout
        return {
            column.name: json_texts(layout.schema, column, cells[place])
            for column, place in zip(layout.schema.columns, layout.places, strict=True)
            if column.name in names
        }


def _only(image: list[Cells], plain: Flags) -> list[Cells]:
    if plain.all():
        return image
    return [Cells(one.buffer, one.start[plain], one.length[plain], one.null[plain]) for one in image]


def _image(names: Sequence[str], values: dict[str, pa.StringArray]) -> pa.StringArray:
    if not names:
        raise NotVectorizable("an image without columns")
    return objects(names, [values[name] for name in names])


def _key(layout: RowReader, values: dict[str, pa.StringArray], none: pa.StringArray) -> pa.StringArray:
    key = layout.schema.key
    if not key:
        return none
    if not values.keys() >= set(key):
        raise NotVectorizable("the key is not in the message")
    return arrays([values[name] for name in key])

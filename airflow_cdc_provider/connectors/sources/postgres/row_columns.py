"""Decodes thousands of plain row changes of one relation at once, with the same results as ``row_images.RowReader``.

Plain are inserts, deletes, and updates without an old row or with the whole old row under the same key, if no cell is
missing. All other messages, malformed or rare, are left to RowReader.
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
    LONG_TIMESTAMP,
    Bytes,
    Cells,
    Flags,
    Indexes,
    NotVectorizable,
    json_texts,
)
from airflow_cdc_provider.connectors.sources.postgres.messages import DELETE, INSERT, KEY, NEW, OLD, UPDATE
from airflow_cdc_provider.connectors.sources.postgres.row_images import RowReader
from airflow_cdc_provider.core.log.change_records import Operation

VALUE, NULL = b"tn"
IMAGE = 5
"""Offset of the letter of the first image in a row change: after its own letter and the oid."""

ROW_COLUMNS = ("op", "key_before", "key", "before", "after", "before_complete", "after_complete")


@dataclass(frozen=True)
class VectorizedRows:
    """``rows``: ROW_COLUMNS of the plain messages, in order. ``plain``: a flag per message."""

    rows: pa.RecordBatch
    plain: Flags


def vectorized_rows(reader: RowReader, messages: Sequence[bytes]) -> VectorizedRows | None:
    """None if none of the messages is plain."""
    buffer = _MessageBuffer(reader, messages)
    plain, parts, order = np.zeros(len(messages), bool), [], []
    for form in _FORMS:
        candidates = np.flatnonzero(buffer.is_form(form))
        rows, indexes = (buffer.rows(form, candidates) if len(candidates) else None) or (None, candidates)
        if rows is not None and rows.num_rows:
            plain[indexes] = True
            parts.append(rows)
            order.append(indexes)
    if not parts:
        return None
    if len(parts) == 1:
        return VectorizedRows(parts[0], plain)
    table = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return VectorizedRows(table.take(pa.array(np.argsort(np.concatenate(order)))), plain)


@dataclass(frozen=True)
class _Form:
    """A kind of message, determined by its letter and that of its first image."""

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


class _MessageBuffer:
    def __init__(self, reader: RowReader, messages: Sequence[bytes]) -> None:
        self.reader = reader
        # Padding, because headers and times are read beyond the end of the last message; those values are ignored.
        self.buffer: Bytes = np.frombuffer(b"".join([*messages, bytes(2 * LONG_TIMESTAMP)]), np.uint8)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        self.ends: Indexes = np.cumsum(lengths)
        self.starts: Indexes = self.ends - lengths
        # The big-endian number of four bytes at every offset.
        self.numbers: npt.NDArray[np.uint32] = np.ndarray(
            (len(self.buffer) - 3,), np.dtype(">u4"), self.buffer, strides=(1,)
        )

    def is_form(self, form: _Form) -> Flags:
        letters, images = self.buffer[self.starts], self.buffer[self.starts + IMAGE]
        matches: Flags = (self.ends - self.starts > IMAGE) & (letters == form.letter) & (images == form.image)
        return matches

    def rows(self, form: _Form, candidates: Indexes) -> tuple[pa.RecordBatch, Indexes] | None:
        """The rows of the plain messages among ``candidates``, and their indexes. None if there are none."""
        at, ends = self.starts[candidates] + IMAGE + 1, self.ends[candidates]
        plain = np.ones(len(candidates), bool)
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
            return self._decode(form, [_filter(image, plain) for image in images], candidates[plain])
        except NotVectorizable:
            return None

    def _tuple(self, at: Indexes, plain: Flags) -> tuple[list[Cells], Indexes]:
        """The cells of one image and its end. Clears ``plain`` for messages whose image is malformed or incomplete."""
        last = len(self.numbers) - LONG_TIMESTAMP
        at = np.minimum(at, last)
        plain &= self.numbers[at] >> 16 == self.reader.width
        at = at + 2
        cells = []
        for _ in range(self.reader.width):
            at = np.minimum(at, last)
            kind = self.buffer[at]
            null = kind == NULL
            plain &= null | (kind == VALUE)
            length = np.where(null, 0, self.numbers[at + 1].astype(np.int64))
            at = at + np.where(null, 1, 5)
            cells.append(Cells(self.buffer, at, length, null))
            at = at + length
        return cells, at

    def _decode(self, form: _Form, images: list[list[Cells]], indexes: Indexes) -> tuple[pa.RecordBatch, Indexes]:
        reader, none = self.reader, pa.nulls(len(indexes), pa.string())
        key_before = key = before = after = none
        before_complete = after_complete = False
        if form.image != NEW:
            names = reader.schema.names if form.image == OLD else reader.identity_names
            values = self._values(images[0], names)
            before, before_complete = _image(names, values), len(names) == len(reader.schema.names)
            key_before = _key(reader, values, none)
        if form.letter != DELETE:
            values = self._values(images[-1], reader.schema.names)
            after, after_complete = _image(reader.schema.names, values), True
            key = _key(reader, values, none)
        if form.letter == UPDATE and form.image == NEW:
            key_before = key
        columns = [
            pa.repeat(pa.scalar(form.op.value), len(indexes)),
            key_before,
            key,
            before,
            after,
            pa.repeat(pa.scalar(before_complete), len(indexes)),
            pa.repeat(pa.scalar(after_complete), len(indexes)),
        ]
        rows = pa.RecordBatch.from_arrays(columns, ROW_COLUMNS)
        if form.letter == UPDATE and form.image == OLD and reader.schema.key and not key_before.equals(key):
            same_key = pc.equal(key_before, key)
            return rows.filter(same_key), indexes[same_key.to_numpy(zero_copy_only=False)]
        return rows, indexes

    def _values(self, cells: list[Cells], names: Sequence[str]) -> dict[str, pa.StringArray]:
        reader = self.reader
        return {
            column.name: json_texts(reader.schema, column, cells[index])
            for column, index in zip(reader.schema.columns, reader.cell_indexes, strict=True)
            if column.name in names
        }


def _filter(image: list[Cells], plain: Flags) -> list[Cells]:
    if plain.all():
        return image
    return [Cells(cells.buffer, cells.start[plain], cells.length[plain], cells.null[plain]) for cells in image]


def _image(names: Sequence[str], values: dict[str, pa.StringArray]) -> pa.StringArray:
    if not names:
        raise NotVectorizable("an image without columns")
    return objects(names, [values[name] for name in names])


def _key(reader: RowReader, values: dict[str, pa.StringArray], none: pa.StringArray) -> pa.StringArray:
    key = reader.schema.key
    if not key:
        return none
    if not values.keys() >= set(key):
        raise NotVectorizable("the key is not in the message")
    return arrays([values[name] for name in key])

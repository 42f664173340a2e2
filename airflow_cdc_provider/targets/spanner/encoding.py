"""Arrow columns as protobuf in bytes. Messages that Python makes value by value take several times as long."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.targets.spanner.columns import FLOATS, SpannerType
from airflow_cdc_provider.targets.spanner.values import texts

LIST_VALUES, TEXT, NUMBER, BOOL, NULL = 0x0A, 0x1A, 0x11, 0x20, 0x08
"""Tags of ``ListValue.values``, and of the fields of ``Value``."""

KEYS, WRITTEN_ROWS = 0x0A, 0x1A
"""Tags of ``KeySet.keys`` and of ``Mutation.Write.values``."""


def encode(array: pa.Array, kind: SpannerType) -> pa.Array:
    """Each value as one of the values of a message ``ListValue``: binary, none missing."""
    if kind is SpannerType.BOOL:
        found = pc.if_else(array, _value(BOOL, 1), _value(BOOL, 0))
    elif kind in FLOATS:
        found = pc.if_else(pc.is_finite(array), _numbers(array), _texts(array, kind))
    else:
        found = _texts(array, kind)
    return pc.fill_null(found, _value(NULL, 0))


def encode_texts(found: Iterable[str]) -> pa.Array:
    return encode(pa.array(found, pa.string()), SpannerType.STRING)


def encode_rows(columns: Iterable[pa.Array], tag: int) -> bytes:
    """The rows of encoded columns, each a message ``ListValue``, as the field of this tag."""
    rows = pc.binary_join_element_wise(*columns, b"")
    return b"".join(_behind_heads(rows, lambda length: bytes([tag, *_varint(length)])).to_pylist())


def _value(*content: int) -> bytes:
    return bytes([LIST_VALUES, len(content), *content])


def _texts(array: pa.Array, kind: SpannerType) -> pa.Array:
    return _behind_heads(texts(array, kind).cast(pa.binary()), _head_of_text)


def _head_of_text(length: int) -> bytes:
    head = bytes([TEXT, *_varint(length)])
    return bytes([LIST_VALUES, *_varint(len(head) + length), *head])


def _numbers(array: pa.Array) -> pa.Array:
    numbers = pc.fill_null(array.cast(pa.float64()), 0).to_numpy(zero_copy_only=False)
    values = np.empty((len(array), len(_value(NUMBER)) + numbers.itemsize), np.uint8)
    values[:, :3] = LIST_VALUES, 1 + numbers.itemsize, NUMBER
    values[:, 3:] = numbers.astype("<f8").view(np.uint8).reshape(-1, numbers.itemsize)
    fixed = pa.Array.from_buffers(pa.binary(values.shape[1]), len(array), [None, pa.py_buffer(values)])
    return fixed.cast(pa.binary())


def _behind_heads(content: pa.Array, head: Callable[[int], bytes]) -> pa.Array:
    """``head``: of a length."""
    lengths = pc.binary_length(content).dictionary_encode()
    heads = pa.array(map(head, lengths.dictionary.to_pylist()), pa.binary())
    return pc.binary_join_element_wise(heads.take(lengths.indices), content, b"")


def _varint(number: int) -> list[int]:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return [*found, number]

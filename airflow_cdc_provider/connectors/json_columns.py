"""Columns of canonical JSON texts, composed from Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CONTROL, ESCAPED = 2, 1
ESCAPES = np.zeros(256, np.uint8)
"""Per byte, whether a JSON string must escape it: ``ESCAPED`` by a backslash, ``CONTROL`` in another way."""
ESCAPES[:0x20], ESCAPES[[ord('"'), ord("\\")]] = CONTROL, ESCAPED
DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def strings(texts: pa.StringArray) -> pa.StringArray:
    """The texts as JSON strings; NULL stays NULL."""
    escapes = int(ESCAPES[_content(texts)].max(initial=0))
    if escapes == CONTROL:
        return pa.array([None if text is None else encode_basestring(text) for text in texts.to_pylist()], pa.string())
    if escapes == ESCAPED:
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return quoted(texts)


def quoted(texts: pa.StringArray, suffix: str = "") -> pa.StringArray:
    """Texts that need no escapes, as JSON strings with ``suffix`` before the closing quote."""
    return pc.binary_join_element_wise('"', texts, f'{suffix}"', "")


def objects(names: Sequence[str], texts: Sequence[pa.StringArray]) -> pa.StringArray:
    members = [f"{',' if n else '{'}{encode_basestring(name)}:" for n, name in enumerate(names)]
    return _join(members, texts, "}")


def arrays(texts: Sequence[pa.StringArray]) -> pa.StringArray:
    return _join(["," if n else "[" for n in range(len(texts))], texts, "]")


def _join(prefixes: Sequence[str], texts: Sequence[pa.StringArray], end: str) -> pa.StringArray:
    pieces: list[Any] = [piece for pair in zip(prefixes, texts, strict=True) for piece in pair]
    return pc.binary_join_element_wise(*pieces, end, "")


def hex_digits(numbers: pa.Array, digits: int) -> pa.StringArray:
    """Integers as hex digits. They must be non-negative, not NULL, and fit."""
    content = numbers.to_numpy().astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    result: npt.NDArray[np.uint8] = np.empty((len(numbers), 16), np.uint8)
    result[:, 0::2], result[:, 1::2] = DIGITS[content >> 4], DIGITS[content & 15]
    buffer = pa.py_buffer(np.ascontiguousarray(result[:, 16 - digits :]))
    return pa.Array.from_buffers(pa.binary(digits), len(numbers), [None, buffer]).cast(pa.binary()).cast(pa.string())


def _content(texts: pa.StringArray) -> npt.NDArray[np.uint8]:
    """The bytes of all texts, one after another."""
    _, offsets, content = texts.buffers()
    if not len(texts) or content is None:
        return np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)
    return np.frombuffer(content, np.uint8)[ends[texts.offset] : ends[texts.offset + len(texts)]]

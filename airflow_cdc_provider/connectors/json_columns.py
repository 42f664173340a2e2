"""Columns of canonical JSON texts, put together from Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CONTROL, ESCAPED = "[\\x00-\\x1f]", '["\\\\]'
DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def strings(texts: pa.StringArray) -> pa.StringArray:
    """As JSON strings; NULL stays NULL."""
    if _any(pc.match_substring_regex(texts, CONTROL)):
        return pa.array([None if one is None else encode_basestring(one) for one in texts.to_pylist()], pa.string())
    if _any(pc.match_substring_regex(texts, ESCAPED)):
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return quoted(texts)


def quoted(texts: pa.StringArray, behind: str = "") -> pa.StringArray:
    """Texts that need no escapes, as JSON strings. ``behind``: what else stands at their end."""
    return pc.binary_join_element_wise('"', texts, f'{behind}"', "")


def objects(names: Sequence[str], texts: Sequence[pa.StringArray]) -> pa.StringArray:
    members = [f"{',' if n else '{'}{encode_basestring(name)}:" for n, name in enumerate(names)]
    return _joined(members, texts, "}")


def arrays(texts: Sequence[pa.StringArray]) -> pa.StringArray:
    return _joined(["," if n else "[" for n in range(len(texts))], texts, "]")


def _joined(before: Sequence[str], texts: Sequence[pa.StringArray], end: str) -> pa.StringArray:
    pieces: list[Any] = [piece for pair in zip(before, texts, strict=True) for piece in pair]
    return pc.binary_join_element_wise(*pieces, end, "")


def hex_digits(numbers: pa.Array, digits: int) -> pa.StringArray:
    """Whole numbers, none of them negative or NULL or too large, as hex digits."""
    content = numbers.to_numpy().astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    found: npt.NDArray[np.uint8] = np.empty((len(numbers), 16), np.uint8)
    found[:, 0::2], found[:, 1::2] = DIGITS[content >> 4], DIGITS[content & 15]
    buffer = pa.py_buffer(np.ascontiguousarray(found[:, 16 - digits :]))
    return pa.Array.from_buffers(pa.binary(digits), len(numbers), [None, buffer]).cast(pa.binary()).cast(pa.string())


def _any(told: pa.BooleanArray) -> bool:
    return pc.any(told).as_py() is True

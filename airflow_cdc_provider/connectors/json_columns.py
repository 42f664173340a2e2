"""Columns of canonical JSON texts, composed from Arrow arrays."""

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
    """The texts as JSON strings; NULL stays NULL."""
    if _any(pc.match_substring_regex(texts, CONTROL)):
        return pa.array([None if text is None else encode_basestring(text) for text in texts.to_pylist()], pa.string())
    if _any(pc.match_substring_regex(texts, ESCAPED)):
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


def _any(flags: pa.BooleanArray) -> bool:
    return pc.any(flags).as_py() is True

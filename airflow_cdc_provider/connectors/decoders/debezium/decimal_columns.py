"""Arrow columns of decimals sent as base64 of their unscaled values, as canonical JSON texts."""

from __future__ import annotations

from string import ascii_letters, ascii_uppercase, digits

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import number_rows
from airflow_cdc_provider.connectors.json_columns import quoted

ALPHABET = ascii_uppercase + ascii_letters[:26] + digits + "+/"
INVALID, PADDING = 255, ord("=")
CODES = np.full(256, INVALID, np.uint8)
CODES[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(64)
MAX_LETTERS = 11
"""The length of eight bytes without padding."""
MAX_DIGITS = 18
MAX_SCALE = 6
"""With a larger scale, Arrow writes small numbers with an exponent."""


def decimal_texts(values: pa.Array, scale: int, precision: int) -> pa.StringArray | None:
    """NULL stays NULL. None if a value is not base64, or has more than eight bytes or ``precision`` digits."""
    if not pa.types.is_string(values.type) or precision > MAX_DIGITS or not 0 < scale <= MAX_SCALE:
        return None
    texts = values.drop_null()
    numbers = np.zeros(len(texts), np.int64)
    lengths = pc.binary_length(texts).to_numpy()
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        decoded = _numbers(_letters(texts.take(pa.array(rows)), int(length)))
        if decoded is None:
            return None
        numbers[rows] = decoded
    if len(numbers) and np.abs(numbers).max() >= 10**precision:
        return None
    unscaled = pa.array(numbers).cast(pa.decimal128(19, 0))
    scaled = pa.Array.from_buffers(pa.decimal128(19, scale), len(unscaled), unscaled.buffers(), offset=unscaled.offset)
    return _with_nulls(quoted(scaled.cast(pa.string())), values)


def _letters(texts: pa.StringArray, length: int) -> npt.NDArray[np.uint8]:
    """One row of bytes per text."""
    content = np.frombuffer(pc.binary_join_element_wise(texts.cast(pa.binary()), b"", b"").buffers()[2], np.uint8)
    return content[: len(texts) * length].reshape(len(texts), length)


def _numbers(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    length = letters.shape[1]
    if length < 4 or length % 4 or length > MAX_LETTERS + 1:
        return None
    padding = (letters[:, -2:] == PADDING).sum(axis=1)
    numbers = np.zeros(len(letters), np.int64)
    for padded in np.unique(padding):
        rows = np.flatnonzero(padding == padded)
        decoded = _unpadded(CODES[letters[rows, : length - padded]])
        if decoded is None:
            return None
        numbers[rows] = decoded
    return numbers


def _unpadded(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    """Big-endian two's complement, six bits per letter; the last letter may have unused bits."""
    letters = codes.shape[1]
    if letters > MAX_LETTERS or (codes == INVALID).any():
        return None
    bits = 6 * letters // 8 * 8
    number: npt.NDArray[np.int64] = np.zeros(len(codes), np.int64)
    for index in range(letters):
        taken = min(6, bits - 6 * index)
        number = (number << taken) | (codes[:, index] >> (6 - taken)).astype(np.int64)
    number = (number << (64 - bits)) >> (64 - bits)
    return number


def _with_nulls(texts: pa.StringArray, values: pa.Array) -> pa.StringArray:
    if not values.null_count:
        return texts
    return texts.take(number_rows(values.is_valid(), 0))

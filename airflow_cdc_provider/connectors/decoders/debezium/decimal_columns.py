"""Decimals told as base64 of their unscaled digits, thousands at once, as canonical JSON texts."""

from __future__ import annotations

from string import ascii_letters, ascii_uppercase, digits

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import places
from airflow_cdc_provider.connectors.json_columns import quoted

ALPHABET = ascii_uppercase + ascii_letters[:26] + digits + "+/"
NO_LETTER, PADDING = 255, ord("=")
CODES = np.full(256, NO_LETTER, np.uint8)
CODES[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(64)
MOST_LETTERS = 11
"""Of eight bytes, without padding."""
MOST_DIGITS = 18
MOST_SCALE = 6
"""Beyond it Arrow writes small numbers with an exponent."""


def decimal_texts(values: pa.Array, scale: int, precision: int) -> pa.StringArray | None:
    """NULL stays NULL. None where one value is no such text, or has more than eight bytes or ``precision`` digits."""
    if not pa.types.is_string(values.type) or precision > MOST_DIGITS or not 0 < scale <= MOST_SCALE:
        return None
    there = values.drop_null()
    numbers = np.zeros(len(there), np.int64)
    lengths = pc.binary_length(there).to_numpy()
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        found = _numbers(_letters(there.take(pa.array(alike)), int(length)))
        if found is None:
            return None
        numbers[alike] = found
    if len(numbers) and np.abs(numbers).max() >= 10**precision:
        return None
    unscaled = pa.array(numbers).cast(pa.decimal128(19, 0))
    scaled = pa.Array.from_buffers(pa.decimal128(19, scale), len(unscaled), unscaled.buffers(), offset=unscaled.offset)
    return _with_nulls(quoted(scaled.cast(pa.string())), values)


def _letters(texts: pa.StringArray, length: int) -> npt.NDArray[np.uint8]:
    """One row of bytes for each text."""
    content = np.frombuffer(pc.binary_join_element_wise(texts.cast(pa.binary()), b"", b"").buffers()[2], np.uint8)
    return content[: len(texts) * length].reshape(len(texts), length)


def _numbers(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    length = letters.shape[1]
    if length < 4 or length % 4 or length > MOST_LETTERS + 1:
        return None
    padding = (letters[:, -2:] == PADDING).sum(axis=1)
    numbers = np.zeros(len(letters), np.int64)
    for padded in np.unique(padding):
        alike = np.flatnonzero(padding == padded)
        found = _unpadded(CODES[letters[alike, : length - padded]])
        if found is None:
            return None
        numbers[alike] = found
    return numbers


def _unpadded(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64] | None:
    """Big-endian two's complement, six bits a letter; the last letter may have some too many."""
    letters = codes.shape[1]
    if letters > MOST_LETTERS or (codes == NO_LETTER).any():
        return None
    bits = 6 * letters // 8 * 8
    number: npt.NDArray[np.int64] = np.zeros(len(codes), np.int64)
    for place in range(letters):
        taken = min(6, bits - 6 * place)
        number = (number << taken) | (codes[:, place] >> (6 - taken)).astype(np.int64)
    number = (number << (64 - bits)) >> (64 - bits)
    return number


def _with_nulls(texts: pa.StringArray, values: pa.Array) -> pa.StringArray:
    if not values.null_count:
        return texts
    return texts.take(places(values.is_valid(), 0))

"""Rows of one schema as columns of canonical JSON: the batch variant of ``images.RowImages``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable, require, true_rows
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.connectors.json_columns import arrays, objects

UNDERFLOW = (b"e-", b"E-", b"0" * 16)
"""The text of a number that is not zero but underflows to a zero float contains at least one of these."""


@dataclass(frozen=True)
class ImageColumns:
    """``texts``: column → one JSON text per row, in the order of the schema's columns. ``unknown``: column → the rows
    without a value for it; contains no key column."""

    texts: Mapping[str, pa.StringArray]
    unknown: Mapping[str, pa.BooleanArray]

    @cached_property
    def images(self) -> pa.StringArray:
        if not self.unknown:
            return objects(list(self.texts), list(self.texts.values()))
        parts: list[Any] = []
        for name, texts in self.texts.items():
            member = f",{encode_basestring(name)}:"
            if name in self.unknown:
                members = pc.binary_join_element_wise(member, texts, "")
                parts.append(pc.if_else(self.unknown[name], "", members))
            else:
                parts += [member, texts]
        return pc.binary_replace_slice(pc.binary_join_element_wise(*parts, "}", ""), 0, 1, "{")

    @cached_property
    def complete(self) -> pa.BooleanArray:
        rows = len(next(iter(self.texts.values())))
        complete = pa.repeat(pa.scalar(True), rows)
        for unknown in self.unknown.values():
            complete = pc.and_(complete, pc.invert(unknown))
        return complete

    def keys(self, names: Sequence[str]) -> pa.StringArray:
        return arrays([self.texts[name] for name in names])


def json_texts(
    values: pa.Array, convert: Converter, convert_array: ArrowConverter | None, warnings: list[str]
) -> pa.StringArray:
    """Raises NotVectorizable for values that ``convert`` rejects or warns about."""
    if convert_array is not None and (column := convert_array(values)) is not None:
        return pc.fill_null(column, "null")
    items = values.to_pylist()
    try:
        texts = ["null" if value is None else convert(value) for value in items]
    except DecodeError:
        raise NotVectorizable(_problem_rows(items, convert, warnings)) from None
    if warnings:
        raise NotVectorizable(_problem_rows(items, convert, warnings))
    return pa.array(texts, pa.string())


def require_true_zeros(values: pa.Array, messages: Sequence[bytes], message_of: npt.NDArray[np.int64]) -> None:
    """Raises NotVectorizable for zeros that may be underflowed numbers. ``message_of``: row → index of its message."""
    if not pa.types.is_float64(values.type):
        return
    zeros = true_rows(pc.fill_null(pc.equal(values, 0.0), False))
    if rows := {int(row) for row in zeros if any(mark in messages[message_of[row]] for mark in UNDERFLOW)}:
        raise NotVectorizable(rows)


def require_plain_numbers(values: pa.Array) -> None:
    """Raises NotVectorizable for NaN, infinities and zeros with a sign."""
    if pa.types.is_float64(values.type):
        numbers = values.fill_null(0.0).to_numpy()
        require(pa.array(np.isfinite(numbers) & ~((numbers == 0) & np.signbit(numbers))))


def _problem_rows(values: Sequence[Any], convert: Converter, warnings: list[str]) -> set[int]:
    rows = set()
    for row, value in enumerate(values):
        warnings.clear()
        try:
            if value is not None:
                convert(value)
        except DecodeError:
            rows.add(row)
        if warnings:
            rows.add(row)
    warnings.clear()
    return rows

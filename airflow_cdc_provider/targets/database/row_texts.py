"""Converts Arrow batches of rows to batches of texts that databases can load."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.columns.values import from_json
from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.core.table.schema import Column


def is_binary(kind: pa.DataType) -> bool:
    """Whether the text of such a column is hex bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def as_texts(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The same columns. ``names``: those of the table; ``_cdc_known`` becomes a text with one digit, 0 or 1, for each,
    which every database can evaluate."""
    texts = [
        _known_bits(column, names) if name == KNOWN else _text(column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(texts, batch.schema.names)


def _text(values: pa.Array) -> pa.Array:
    kind = values.type
    if is_binary(kind):
        return pa.array((None if value is None else value.hex() for value in values.to_pylist()), pa.string())
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us")).cast(pa.string())
    if pa.types.is_decimal(kind):
        return _decimal_texts(values)
    if pa.types.is_floating(kind):
        return _float_texts(values)
    return values.cast(pa.string())


def _decimal_texts(decimals: pa.Array) -> pa.Array:
    """Without the exponents that Arrow writes for small numbers."""
    texts = decimals.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return pa.array((None if value is None else format(value, "f") for value in decimals.to_pylist()), pa.string())


def _float_texts(floats: pa.Array) -> pa.Array:
    """The shortest text of each number; NaN and the infinities as in SQL."""
    texts = floats.cast(pa.string())
    if pc.all(pc.is_finite(floats)).as_py() is not False:
        return texts
    for short, sql_text in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        texts = pc.if_else(pc.equal(texts, short), sql_text, texts)
    return texts


def loaded_text(canonical: object, column: Column) -> str:
    """The text that a loaded row has for a canonical value (as ``json.loads`` gives it), which is not null. A value in
    a statement is made of it, so it is the same number, time and text as the one in a file."""
    value = from_json(column.type.kind)(canonical)
    (text,) = _text(pa.array([value], arrow_type(column.type))).to_pylist()
    return str(text)


def _known_bits(known: pa.Array, names: Sequence[str]) -> pa.Array:
    """NULL means that every column is known, and stays NULL."""

    def bits(names_known: list[str] | None) -> str | None:
        return None if names_known is None else "".join("1" if name in names_known else "0" for name in names)

    return pa.array(map(bits, known.to_pylist()), pa.string())

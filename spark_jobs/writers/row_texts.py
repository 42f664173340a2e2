"""Rows as the texts that databases read them from: Arrow batches in, batches of strings out."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import KNOWN


def is_binary(kind: pa.DataType) -> bool:
    """Whether the text of such a column is the hex of bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def as_texts(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The same columns. ``names``: those of the table, in the order in which ``_cdc_known`` becomes a text of 0 and 1,
    one for each: every database can look into that."""
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
        return _plain(values)
    if pa.types.is_floating(kind):
        return _spelled(values)
    return values.cast(pa.string())


def _plain(decimals: pa.Array) -> pa.Array:
    """Without the exponents that Arrow writes for small numbers."""
    texts = decimals.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return pa.array((None if value is None else format(value, "f") for value in decimals.to_pylist()), pa.string())


def _spelled(floats: pa.Array) -> pa.Array:
    """The shortest text of each number; what is none is spelled as SQL spells it."""
    texts = floats.cast(pa.string())
    if pc.all(pc.is_finite(floats)).as_py() is not False:
        return texts
    for short, spelled in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        texts = pc.if_else(pc.equal(texts, short), spelled, texts)
    return texts


def _known_bits(known: pa.Array, names: Sequence[str]) -> pa.Array:
    """NULL says that every column is known, and stays so."""

    def bits(told: list[str] | None) -> str | None:
        return None if told is None else "".join("1" if name in told else "0" for name in names)

    return pa.array(map(bits, known.to_pylist()), pa.string())

"""Columns of messages as the JSON that a message would contain, equal to ``exact_json`` of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import fields
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.jsonable import number_or_text
from airflow_cdc_provider.connectors.json_columns import strings

NULL = "null"
Texts = Any
"""An Arrow array with one text per row, or the text of all rows."""


def json_texts(values: pa.Array) -> pa.StringArray:
    """Integers, floating-point numbers, booleans, texts, and structs of these. NULL becomes ``null``."""
    return _per_row(_texts(values), len(values))


def json_bytes(values: pa.Array) -> list[bytes]:
    """As ``json_texts``, as a message contains them."""
    encoded: list[bytes] = json_texts(values).cast(pa.binary()).to_pylist()
    return encoded


def object_texts(members: Mapping[str, pa.Array], rows: int) -> pa.StringArray:
    """Objects with these members, in their order."""
    return _per_row(_object(members), rows)


def _per_row(texts: Texts, rows: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(texts), rows) if isinstance(texts, str) else texts


def _texts(values: pa.Array) -> Texts:
    if values.null_count == len(values):
        return NULL
    if pa.types.is_struct(values.type):
        texts = _object(fields(values))
    elif _is_constant(values):
        return str(_plain(values[:1])[0])
    else:
        texts = _plain(values)
    return pc.if_else(values.is_valid(), texts, NULL) if values.null_count else texts


def _is_constant(values: pa.Array) -> bool:
    """Most fields of a source block are. Equal floating-point numbers may differ in their text: 0.0 and -0.0."""
    if values.null_count or pa.types.is_floating(values.type):
        return False
    return pc.all(pc.equal(values, values[0])).as_py() is True


def _object(members: Mapping[str, pa.Array]) -> Texts:
    pieces: list[Texts] = []
    for name, values in members.items():
        pieces += [f"{',' if pieces else '{'}{encode_basestring(name)}:", _texts(values)]
    return _joined([*pieces, "}"])


def _joined(pieces: Sequence[Texts]) -> Texts:
    joined: list[Any] = []
    for piece in pieces:
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined[0] if len(joined) == 1 else pc.binary_join_element_wise(*joined, "")


def _plain(values: pa.Array) -> pa.StringArray:
    if pa.types.is_boolean(values.type):
        return pc.if_else(values, "true", "false")
    if pa.types.is_floating(values.type):
        return _numbers(values)
    return strings(values) if pa.types.is_string(values.type) else values.cast(pa.string())


def _numbers(values: pa.DoubleArray) -> pa.StringArray:
    """The texts of words without commas, too. One text of all is written in a third of the time of one text each."""
    numbers = [None if value is None else number_or_text(value) for value in values.to_pylist()]
    return pa.array(dumps(numbers)[1:-1].split(","), pa.string())

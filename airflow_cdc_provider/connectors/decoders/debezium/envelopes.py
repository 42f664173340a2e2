"""Envelopes that are decoded in one batch, by the form in which they arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.arrow_json import object_texts
from airflow_cdc_provider.connectors.decoders.common.columns import require
from airflow_cdc_provider.connectors.decoders.common.image_columns import require_plain_numbers, require_true_zeros
from airflow_cdc_provider.connectors.decoders.debezium.source_block import AFTER, BEFORE, ROWS, SOURCE


class Envelopes(Protocol):
    """``columns``: the members of each envelope."""

    columns: pa.RecordBatch

    def require_exact(self, values: pa.Array, envelope_of: npt.NDArray[np.int64]) -> None:
        """``values``: of a column in rows. ``envelope_of``: row → index of its envelope. Raises NotVectorizable with
        rows whose value may not be the one that was sent."""

    def without_rows(self) -> pa.StringArray:
        """The texts of the envelopes without their rows. Raises NotVectorizable."""


class JsonEnvelopes:
    def __init__(self, texts: Sequence[bytes], columns: pa.RecordBatch) -> None:
        self.texts, self.columns = texts, columns

    def require_exact(self, values: pa.Array, envelope_of: npt.NDArray[np.int64]) -> None:
        require_true_zeros(values, self.texts, envelope_of)

    def without_rows(self) -> pa.StringArray:
        """Rows must be the first members."""
        texts = pa.array(self.texts, pa.binary())
        at = pc.find_substring(texts, SOURCE.encode())
        require(pc.and_(*(pc.less(pc.find_substring(texts, name.encode()), at) for name in (BEFORE, AFTER))))
        without_rows = [text[start - 1 :] for text, start in zip(self.texts, at.to_pylist(), strict=True)]
        return pc.binary_replace_slice(pa.array(without_rows, pa.binary()), 0, 1, "{").cast(pa.string())


class ColumnEnvelopes:
    """Envelopes that were never JSON."""

    def __init__(self, columns: pa.StructArray) -> None:
        self.columns = pa.RecordBatch.from_struct_array(columns)

    def require_exact(self, values: pa.Array, envelope_of: npt.NDArray[np.int64]) -> None:
        require_plain_numbers(values)

    def without_rows(self) -> pa.StringArray:
        members = zip(self.columns.schema.names, self.columns.columns, strict=True)
        return object_texts({name: column for name, column in members if name not in ROWS}, self.columns.num_rows)

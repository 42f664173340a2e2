"""The images of events that are read together: what their rows tell, and what they do not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import is_text, require
from airflow_cdc_provider.connectors.decoders.common.image_columns import ImageColumns, json_texts, require_true_zeros
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout


def images_of(
    rows: RowPairs, layout: TableLayout, placeholders: pa.StringArray, messages: Sequence[bytes]
) -> ImageColumns:
    """Raises NotVectorizable, with rows."""
    texts, unknown = {}, {}
    for column, quick in zip(layout.schema.columns, layout.quick, strict=True):
        values = rows.columns[column.name]
        require_true_zeros(values, messages, rows.change_of)
        hidden = _hidden(values, column.name, layout, placeholders)
        if layout.whole_before:  # what did not change is as it was
            told_before = pc.fill_null(pc.invert(hidden.take(rows.twin)), False)
            values = pc.if_else(pc.and_(hidden, told_before), values.take(rows.twin), values)
            hidden = pc.and_not(hidden, told_before)
        elif column.name not in layout.schema.key:  # what shows NULL before a change need not have been NULL
            hidden = pc.or_(hidden, pc.and_(rows.is_before, values.is_null()))
        if pc.any(hidden).as_py():
            values = pc.if_else(hidden, pa.scalar(None, values.type), values)
            unknown[column.name] = hidden
        convert = layout.images.converters[column.name]
        texts[column.name] = json_texts(values, convert, quick, layout.images.warnings)
    return ImageColumns(texts, unknown)


def _hidden(values: pa.Array, name: str, layout: TableLayout, placeholders: pa.StringArray) -> pa.BooleanArray:
    """Where a placeholder stands."""
    if not is_text(values):
        return pa.repeat(pa.scalar(False), len(values))
    found = pc.is_in(values, placeholders)
    if name in layout.schema.key:
        require(pc.invert(found))
    return found

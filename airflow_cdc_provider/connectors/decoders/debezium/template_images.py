"""The images of events that are decoded in batches: known and unknown values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import is_text, require
from airflow_cdc_provider.connectors.decoders.common.image_columns import ImageColumns, json_texts
from airflow_cdc_provider.connectors.decoders.common.row_pairs import RowPairs
from airflow_cdc_provider.connectors.decoders.debezium.envelopes import Envelopes
from airflow_cdc_provider.connectors.decoders.debezium.table_layouts import TableLayout


def images_of(rows: RowPairs, layout: TableLayout, placeholders: pa.StringArray, envelopes: Envelopes) -> ImageColumns:
    """Raises NotVectorizable with rows."""
    texts, unknown = {}, {}
    for column, convert_array in zip(layout.schema.columns, layout.arrow_converters, strict=True):
        values = rows.columns[column.name]
        envelopes.require_exact(values, rows.change_of)
        is_unknown = _is_placeholder(values, column.name, layout, placeholders)
        if column.name in layout.unknown_before:
            is_unknown = pc.or_(is_unknown, rows.is_before)
        if column.name in layout.unsure_before:
            is_unknown = pc.or_(is_unknown, pc.and_(rows.is_before, values.is_null()))
        if pc.any(is_unknown).as_py():
            unknown_before = is_unknown.take(rows.previous)  # NULL without a before image
            if column.name in layout.unsure_after:
                is_unknown = pc.or_(is_unknown, pc.and_(values.is_null(), pc.fill_null(unknown_before, False)))
            is_unchanged = pc.and_(is_unknown, pc.fill_null(pc.invert(unknown_before), False))
            values = pc.if_else(is_unchanged, values.take(rows.previous), values)
            is_unknown = pc.and_not(is_unknown, is_unchanged)
            values = pc.if_else(is_unknown, pa.scalar(None, values.type), values)
            unknown[column.name] = is_unknown
        convert = layout.images.converters[column.name]
        texts[column.name] = json_texts(values, convert, convert_array, layout.images.warnings)
    return ImageColumns(texts, unknown)


def _is_placeholder(values: pa.Array, name: str, layout: TableLayout, placeholders: pa.StringArray) -> pa.BooleanArray:
    if not is_text(values):
        return pa.repeat(pa.scalar(False), len(values))
    matches = pc.is_in(values, placeholders)
    if name in layout.schema.key:
        require(pc.invert(matches))
    return matches

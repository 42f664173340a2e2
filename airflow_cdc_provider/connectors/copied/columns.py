"""Blocks of change records, and tables of rows, as those of the copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.arrow_types import arrow_schema, arrow_type
from airflow_cdc_provider.connectors.blocks import Block, log_columns
from airflow_cdc_provider.connectors.copied.records import CopiedChange, CopiedRecords
from airflow_cdc_provider.connectors.unrepresentable import unrepresentable_row
from airflow_cdc_provider.core.columns.casts import CannotCast
from airflow_cdc_provider.core.columns.copied import CopiedColumn, CopiedColumns
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.log.change_records import FIELDS, ChangeRecord, Operation
from airflow_cdc_provider.core.spec.columns import Metadata

CONVERTED = ("op", "key_before", "key", "before", "after", "commit_ts")


def copied_block(block: Block, table: CopiedRecords) -> Iterator[Block | ChangeRecord]:
    """The same records, in the same order: single records if the copy cannot have one of them."""
    columns = block.columns
    schema_ids = pc.unique(columns.column("schema_id")).to_pylist()
    schema, images = table.schema_of(schema_ids[0])
    rows = zip(*(columns.column(name).to_pylist() for name in CONVERTED), strict=True)
    changes = [table.change(images, *row) for row in rows]
    if len(schema_ids) > 1 or any(change.failed for change in changes) or _has_refetch(columns):
        yield from map(table.record, block_records(block))
        return
    values: dict[str, Any] = dict(zip(CopiedChange._fields, zip(*changes, strict=True), strict=True))
    complete = pc.and_(columns.column("before_complete"), pa.array(values["before_complete"], pa.bool_()))
    changed = {
        **{name: pa.array(values[name], pa.string()) for name in ("key_before", "key", "before", "after")},
        "before_complete": complete,
        "schema_id": pa.repeat(schema.schema_id, len(changes)),
        "event_id": pa.array(map(table.event_id, columns.column("event_id").to_pylist()), pa.string()),
    }
    arrays = [changed.get(name, columns.column(name)) for name in FIELDS]
    yield replace(block, columns=pa.RecordBatch.from_arrays(arrays, schema=log_columns()))


def block_records(block: Block) -> Iterator[ChangeRecord]:
    values = [block.columns.column(name).to_pylist() for name in FIELDS]
    for row in zip(*values, strict=True):
        record = ChangeRecord(*row)
        record.refetch, record.warnings = tuple(record.refetch or ()), tuple(record.warnings or ())
        yield record


def _has_refetch(columns: pa.RecordBatch) -> bool:
    return bool(pc.any(pc.greater(pc.list_value_length(columns.column("refetch")), 0)).as_py())


class CopiedTables:
    """Tables of rows of one schema. ``columns``: as the copy has them."""

    def __init__(self, columns: CopiedColumns) -> None:
        self._columns = columns.columns
        self._schema = columns.copied_schema
        self._source = columns.schema
        self._arrow_schema = arrow_schema(self._schema)

    def table(self, rows: pa.Table) -> pa.Table:
        """Raises CheckFailed (CPY009) where a value cannot be cast."""
        return pa.table([self._array(one, rows) for one in self._columns], schema=self._arrow_schema)

    def _array(self, copied: CopiedColumn, rows: pa.Table) -> Any:
        kind = arrow_type(copied.column.type)
        if copied.added is not None:
            return pa.chunked_array([pa.repeat(pa.scalar(self._added(copied), kind), len(rows))])
        values = rows[copied.source.name] if copied.source else pa.nulls(len(rows), kind)
        if copied.convert is not None:
            values = self._converted(values, copied, copied.convert, kind)
        elif values.type != kind:
            values = values.cast(kind)
        if copied.failed is not None:
            texts = self._converted(rows[copied.failed.column.name], copied, copied.failed.text, kind)
            values = pc.coalesce(values, texts)
        return values

    def _added(self, copied: CopiedColumn) -> Any:
        assert copied.added is not None
        match copied.added.metadata:
            case None:
                return copied.added.value
            case Metadata.SOURCE_TABLE:
                return self._schema.table
            case Metadata.OPERATION:
                return Operation.READ.value
            case Metadata.COMMIT_TIME:
                return None

    def _converted(self, values: Any, copied: CopiedColumn, convert: Callable[[Any], Any], kind: Any) -> Any:
        try:
            converted = [None if value is None else convert(value) for value in values.to_pylist()]
        except CannotCast as error:
            raise CheckFailed(unrepresentable_row(self._schema, [copied.column.name], str(error))) from None
        return pa.array(converted, kind)

"""Waiting records lose the columns that their table loses: a later column may have the name of one of them.

Only columns without ids need this: an id distinguishes them from later ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, undecoded
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.schema_changes import ChangeKind, compare, same_columns
from spark_jobs.folds.earlier_rows import in_batches, replaced
from spark_jobs.folds.json_members import image_of, members

UNREADABLE = Operation.UNREADABLE.value


class Remaining(NamedTuple):
    """``names``: the columns that records of a schema lose. ``schema_id``: of the schema without them."""

    names: frozenset[str]
    schema_id: str


@dataclass(frozen=True)
class DroppedColumns:
    """``by_schema``: by schema id. ``schemas``: those that the records have afterwards."""

    by_schema: Mapping[str, Remaining]
    schemas: tuple[TableSchema, ...]

    def without(self, waiting: DataFrame | pa.Table) -> DataFrame | pa.Table:
        """``waiting``: with the columns of change records, and perhaps others."""
        if not self.by_schema:
            return waiting
        if isinstance(waiting, pa.Table):
            return _shortened(waiting, self.by_schema)
        return in_batches(waiting, partial(_shortened, by_schema=self.by_schema))


NOTHING_DROPPED = DroppedColumns({}, ())


def dropped_columns(
    before: TableSchema, after: TableSchema, earlier: Mapping[str, TableSchema], renamed: Mapping[str, str]
) -> DroppedColumns:
    """``earlier``: the schemas of records, by their ids. ``renamed``: former → present names of ``before``, as
    operators have decided."""
    gone = [
        change.before
        for change in compare(before, after, renamed or None)
        if change.kind is ChangeKind.DROP_COLUMN and change.before
    ]
    return lost_columns(gone, before, earlier, renamed)


def lost_columns(
    dropped: Iterable[Column], before: TableSchema, earlier: Mapping[str, TableSchema], renamed: Mapping[str, str]
) -> DroppedColumns:
    """``dropped``: columns of ``before``."""
    gone = {column.name for column in dropped if not column.id}
    by_schema, schemas = dict[str, Remaining](), list[TableSchema]()
    for schema_id, schema in earlier.items() if gone else ():
        pairs = same_columns(schema.columns, before.columns, renamed)
        names = frozenset(former for former, present in pairs.items() if present in gone)
        if names:
            columns = tuple(column for column in schema.columns if column.name not in names)
            schemas.append(replace(schema, columns=columns))
            by_schema[schema_id] = Remaining(names, schemas[-1].schema_id)
    return DroppedColumns(by_schema, tuple(schemas))


def as_it_came(waiting: ChangeRecord) -> ChangeRecord:
    """With the schema of its bytes."""
    content = undecoded(waiting)
    return replace(waiting, schema_id=content.schema_id) if content and content.schema_id else waiting


def with_columns_of(records: Iterable[ChangeRecord], remaining: TableSchema) -> list[ChangeRecord]:
    """Records that were decoded ``as_it_came``, without the columns that were dropped since."""

    def image(text: str | None) -> str | None:
        return text and image_of({name: value for name, value in members(text) if name in remaining.names})

    return [
        one
        if undecoded(one)
        else replace(one, schema_id=remaining.schema_id, before=image(one.before), after=image(one.after))
        for one in records
    ]


def _shortened(records: pa.Table, by_schema: Mapping[str, Remaining]) -> pa.Table:
    schema_ids = records["schema_id"]
    for schema_id, remaining in by_schema.items():
        of_schema = pc.equal(schema_ids, schema_id)
        if not pc.any(of_schema).as_py():
            continue
        bad = pc.and_(of_schema, pc.equal(records["op"], UNREADABLE))
        decoded = pc.and_(of_schema, pc.not_equal(records["op"], UNREADABLE))
        for name in ("before", "after"):
            records = replaced(records, name, decoded, partial(_without, remaining.names))
        records = replaced(records, "after", bad, partial(_content_without, remaining.names, schema_id))
        records = replaced(records, "schema_id", of_schema, {schema_id: remaining.schema_id}.__getitem__)
    return records


def _without(names: frozenset[str], image: str) -> str:
    return image_of({name: value for name, value in members(image) if name not in names})


def _content_without(names: frozenset[str], schema_id: str, text: str) -> str:
    content = from_plain(UndecodedRecord, json.loads(text))
    known = {name: value for name, value in content.known.items() if name not in names}
    lost = tuple(name for name in content.columns if name not in names)
    return canonical(to_plain(replace(content, known=known, columns=lost, schema_id=content.schema_id or schema_id)))

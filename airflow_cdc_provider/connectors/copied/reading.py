"""Rows and changes of a source as those of the copies.

Every job reads its source with these functions. A connector has the source's columns only; what the rule of a table
makes of them is decided here, in the process that reads them and before it writes anything.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_cdc_provider.connectors.copied.records import CopiedRecords, CopiedStream, drops_bytes
from airflow_cdc_provider.connectors.source import Copy, SourceConnector, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.source_features import FetchesRows, HoldsSnapshots, ReadsSplits, TableSnapshot
from airflow_cdc_provider.core.columns.copied import (
    CopiedColumns,
    changes_columns,
    copied_name,
    names_in_copy,
    source_schema,
    without_renamed,
)
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.log.quarantine import WITHHELD_CODEC, undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord, behind
from airflow_cdc_provider.core.table.copy_view import CopyView
from airflow_cdc_provider.core.table.ignored_columns import is_ignored
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import IN_TYPE, MayHold, Specials
from airflow_cdc_provider.core.table.states import TAKES_CHANGES

if TYPE_CHECKING:
    import pyarrow as pa


def source_task(task: TableTask) -> TableTask:
    """The task with name and columns of the source, for its connector."""
    control = task.control
    if control is not None and control.schema is not None:
        control = replace(control, schema=source_schema(control.schema))
    return replace(task, table=task.source_table, schema=source_schema(task.schema), control=control)


def source_tasks(tasks: Iterable[TableTask]) -> list[TableTask]:
    """One task per table of the source, with all columns that the YAML selects and the views of all copies: what was
    decided about one copy has no effect on the change log. What the table was is known from the copy that has followed
    it furthest: one that is paused or blocked may be older than a table that was made anew."""
    copies = defaultdict[str, list[TableTask]](list)
    for task in sorted(tasks, key=lambda one: (behind(one.state, one.control), len(one.table))):
        copies[task.source_table].append(task)
    return [_task_of_all(table, tasks) for table, tasks in copies.items()]


def _task_of_all(table: str, copies: Sequence[TableTask]) -> TableTask:
    first = copies[0]
    logged = next((one.logged for one in copies if one.logged), None) or first
    state = next((one.state for one in copies if one.state in TAKES_CHANGES), first.state)
    return replace(
        first,
        table=table,
        schema=logged.schema,
        rule=logged.rule,
        control=_with_ignored(first.control, logged.schema),
        state=state,
        ignored=(),
        logged=None,
        copies=tuple(view for copy in copies for view in copy.copies or (view_of(copy),)),
    )


def view_of(copy: TableTask) -> CopyView:
    """``copy``: of the stream lane, or of a whole run."""
    logged = copy.logged.schema if copy.logged else copy.schema
    control = _with_ignored(copy.control, logged)
    schema = source_schema(control.schema) if control and control.schema else None
    return CopyView(copy.table, copy.state, schema)


def _with_ignored(control: ControlRecord | None, logged: TableSchema) -> ControlRecord | None:
    """The record of a copy that has no columns left out: changes of those do not concern it."""
    if control is None or control.schema is None or not control.ignored:
        return control
    missing = tuple(
        column
        for column in logged.columns
        if is_ignored(column, control.ignored) and column.name not in control.schema.names
    )
    schema = replace(control.schema, columns=(*control.schema.columns, *missing))
    return replace(control, schema=schema, ignored={})


def read_stream(
    source: SourceConnector, split: StreamSplit, tasks: Sequence[TableTask], epoch: int, key: bytes
) -> Iterator[StreamItem]:
    items = source.read(split, [*map(source_task, tasks)], epoch)
    if not any(changes_columns(task.rule) or drops_bytes(task.rule) for task in tasks):
        return items
    return CopiedStream(tasks, key).items(items)


@contextmanager
def open_source_copy(
    source: SourceConnector, task: TableTask, epoch: int, sealed: Position, cores: int, key: bytes
) -> Iterator[Copy]:
    """The view of the source, with the schema of the copy."""
    with source.copy(source_task(task), epoch, sealed, cores) as copy:
        yield copied_copy(task, copy, key) if changes_columns(task.rule) else copy


@contextmanager
def open_source_snapshot(
    source: SourceConnector, task: TableTask, epoch: int, sealed: Position, cores: int, key: bytes
) -> Iterator[TableSnapshot]:
    """For a comparison. No database has proofs of columns that the rule of the table changes."""
    if isinstance(source, HoldsSnapshots) and not changes_columns(task.rule):
        with source.snapshot(source_task(task), epoch, sealed, cores) as snapshot:
            yield snapshot
    else:
        with open_source_copy(source, task, epoch, sealed, cores, key) as copy:
            yield TableSnapshot(copy)


def copied_copy(task: TableTask, copy: Copy, key: bytes) -> Copy:
    schema = without_renamed(task.rule, copy.schema, source_schema(task.schema).names)
    columns = CopiedColumns(task.rule, schema, key, task.schema.columns)
    return replace(
        copy,
        schema=columns.copied_schema,
        high_cardinality=names_in_copy(task.rule, copy.high_cardinality),
        clustered_by=tuple(
            copied_name(task.rule, name)
            for name in copy.clustered_by
            if not any(one.source and one.source.name == name and one.convert for one in columns.columns)
        ),
        unlogged=(*names_in_copy(task.rule, copy.unlogged), *task.rule.columns.of_changes),
    )


def read_split(source: ReadsSplits, split: str, schema: TableSchema, rule: TableRule, key: bytes) -> Iterator[pa.Table]:
    """``schema``: columns of the copy. Raises CheckFailed (CPY009) where a value cannot be cast."""
    tables = source.read_split(split, source_schema(schema))
    if not changes_columns(rule):
        return tables
    return _copied_tables(tables, schema, rule, key)


def _copied_tables(tables: Iterable[pa.Table], schema: TableSchema, rule: TableRule, key: bytes) -> Iterator[pa.Table]:
    from airflow_cdc_provider.connectors.copied.columns import CopiedTables

    copied = CopiedTables(CopiedColumns(rule, source_schema(schema), key))
    return (copied.table(rows).select(list(schema.names)) for rows in tables)


def fetch_rows(
    source: FetchesRows, task: TableTask, schema: TableSchema, records: Sequence[ChangeRecord], key: bytes
) -> Iterator[ChangeRecord]:
    if task.rule.shard_column:
        records = [*map(_of_source, records)]
    rows = source.fetch(source_task(task), source_schema(schema), records)
    if not changes_columns(task.rule):
        return rows
    copied = CopiedRecords(replace(task, schema=schema), key)
    return map(copied.record, rows)


def _of_source(record: ChangeRecord) -> ChangeRecord:
    """With the keys of the source: without the shard."""
    return replace(record, key=_without_shard(record.key), key_before=_without_shard(record.key_before))


def _without_shard(key: str | None) -> str | None:
    return None if key is None else canonical(json.loads(key)[1:])


def reread(
    source: SourceConnector, record: ChangeRecord, task: TableTask, schema: TableSchema, key: bytes
) -> list[ChangeRecord]:
    content = undecoded(record)
    if content is None or content.codec == WITHHELD_CODEC:
        return [record]
    records = source.reread(record, source_task(task), source_schema(schema))
    if records == [record] or not changes_columns(task.rule):
        return records
    copied = CopiedRecords(replace(task, schema=schema), key)
    return [copied.record(replace(one, schema_id=source_schema(schema).schema_id)) for one in records]


def may_hold(source: SourceConnector) -> MayHold:
    """For columns of copies."""

    def of_column(column: Column) -> Specials:
        origin = column.origin
        if origin is None or not origin.name:
            return source.may_hold(column) if origin is None else frozenset()
        found = source.may_hold(Column(origin.name, origin.type, column.nullable, origin.native))
        return found & IN_TYPE if origin.converted else found

    return of_column

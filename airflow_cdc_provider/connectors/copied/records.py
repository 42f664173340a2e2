"""The items of a stream as those of the copies. Pure.

The bytes of a record that could not be decoded are dropped if they may contain values that must not be stored: of
columns that are excluded, hashed, masked or truncated, or that are new in a sensitive table. So such a record cannot be
decoded again.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.copied.images import CopiedImage, CopiedImages, Texts
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.core.columns.copied import CopiedColumns, changes_columns, source_schema, without_renamed
from airflow_cdc_provider.core.columns.values import time_text
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation, canonical
from airflow_cdc_provider.core.log.quarantine import RECORD_CODEC, UndecodedRecord, undecoded, without_bytes
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.columns import Metadata
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, TableSchema

EVENT_ID_BYTES = 16


class CopiedChange(NamedTuple):
    """``before_complete``: False if columns of the copy are not known from the image before the change. ``failed``:
    what the copy cannot have."""

    key_before: str | None
    key: str | None
    before: str | None
    after: str | None
    before_complete: bool
    failed: CopiedImage | None


class CopiedRecords:
    """The records of one table. ``task``: of the copy. ``key``: of hashes."""

    def __init__(self, task: TableTask, key: bytes) -> None:
        self.task, self._key = task, key
        self._event_key = hashlib.sha256(key).digest()
        self._of_every_row: Texts = {Metadata.SOURCE_TABLE: canonical(task.table)}
        self._follows_changes = bool(task.rule.columns.of_changes)
        schemas = [task.schema, *([task.control.schema] if task.control and task.control.schema else [])]
        self._known = tuple(column for schema in schemas for column in schema.columns)
        self._names = {name for schema in schemas for name in source_schema(schema).names}
        self._schemas: dict[str, tuple[TableSchema, CopiedImages]] = {}
        for schema in map(source_schema, reversed(schemas)):
            self.schema(schema)
            self._current = self._schemas[schema.schema_id]

    def schema(self, schema: TableSchema) -> TableSchema:
        """``schema``: of the source, before the first record that has it."""
        if schema.schema_id not in self._schemas:
            columns = self._columns(without_renamed(self.task.rule, schema, self._names))
            self._schemas[schema.schema_id] = columns.copied_schema, CopiedImages(columns)
        return self._schemas[schema.schema_id][0]

    def record(self, record: ChangeRecord) -> ChangeRecord:
        """A record that the copy cannot have becomes ``unreadable``."""
        schema, images = self.schema_of(record.schema_id)
        schema_id = schema.schema_id if record.schema_id else ""
        if record.op == Operation.UNREADABLE:
            return self._unreadable(replace(record, schema_id=schema_id), images)
        change = self.change(
            images, record.op, record.key_before, record.key, record.before, record.after, record.commit_ts
        )
        copied = replace(
            record,
            schema_id=schema_id,
            key_before=change.key_before,
            key=change.key,
            before=change.before,
            after=change.after,
            before_complete=record.before_complete and change.before_complete,
            refetch=tuple(map(images.name, record.refetch)),
            event_id=self.event_id(record.event_id),
        )
        if record.op == Operation.SCHEMA:
            return self._schema_record(copied, record.after)
        return self._failed(record, copied, change.failed) if change.failed else copied

    def change(
        self,
        images: CopiedImages,
        op: str,
        key_before: str | None,
        key: str | None,
        before: str | None,
        after: str | None,
        commit_ts: datetime | None,
    ) -> CopiedChange:
        """The keys and images of one change. Only changes of rows have images."""
        old_key = images.key(key_before)
        new_key = old_key if key == key_before else images.key(key)
        reason = old_key.reason or new_key.reason
        failed = CopiedImage("", reason=reason) if reason else None
        if op in CONTROL_OPERATIONS:
            return CopiedChange(old_key.text, new_key.text, None, None, True, failed)
        old = None if before is None else images.image(before, self._of_every_row)
        new = None if after is None else images.image(after, self._metadata(op, commit_ts))
        if old is not None and old.failed and not self.task.schema.key:
            failed = old
        if new is not None and new.failed:
            failed = new
        complete = not (self._follows_changes or (old is not None and old.failed))
        texts = [image.text if image else None for image in (old, new)]
        return CopiedChange(old_key.text, new_key.text, texts[0], texts[1], complete, failed)

    def schema_of(self, schema_id: str) -> tuple[TableSchema, CopiedImages]:
        """The schema of the copy and its images. ``schema_id``: of the source."""
        return self._schemas.get(schema_id, self._current)

    def event_id(self, event_id: str) -> str:
        """Ids of some feeds contain the key."""
        if not event_id or not self.task.rule.columns.hash:
            return event_id
        return hashlib.blake2b(event_id.encode(), digest_size=EVENT_ID_BYTES, key=self._event_key).hexdigest()

    def _columns(self, schema: TableSchema) -> CopiedColumns:
        return CopiedColumns(self.task.rule, schema, self._key, self._known)

    def _metadata(self, op: str, commit_ts: datetime | None) -> Texts:
        if not self._follows_changes:
            return self._of_every_row
        time = "null" if commit_ts is None else canonical(time_text(commit_ts))
        return {**self._of_every_row, Metadata.COMMIT_TIME: time, Metadata.OPERATION: canonical(op)}

    def _schema_record(self, record: ChangeRecord, content: str | None) -> ChangeRecord:
        """``content``: the schema of the source. An initial value that cannot be cast is unknown: the table needs a
        copy, which reports the value."""
        source: TableSchema | None = from_plain(TableSchema, json.loads(content or "null"))
        if source is None:
            return record
        copied = self.schema(source)
        had = {column.name for column in source.columns if column.initial is not None}
        lost = any(column.initial is None and _source_name(column) in had for column in copied.columns)
        warnings = tuple(dict.fromkeys((*record.warnings, *(("initial_unknown",) if lost else ()))))
        return replace(record, schema_id=copied.schema_id, after=canonical(to_plain(copied)), warnings=warnings)

    def _unreadable(self, record: ChangeRecord, images: CopiedImages) -> ChangeRecord:
        content = undecoded(record)
        assert content is not None
        known = images.image(canonical(content.known), self._metadata(content.op, record.commit_ts))
        columns = (*map(images.name, content.columns), *known.failed)
        content = replace(content, known=json.loads(known.text), columns=columns if content.columns else ())
        if drops_bytes(self.task.rule):
            content = without_bytes(content)
        key = images.key(record.key).text
        return replace(
            record,
            key=key,
            key_before=None,
            event_id=self.event_id(record.event_id),
            after=canonical(to_plain(content)),
        )

    def _failed(self, record: ChangeRecord, copied: ChangeRecord, failed: CopiedImage) -> ChangeRecord:
        """``record``: at the source. ``failed``: what the copy cannot have of it."""
        own_key = copied.key_before if record.op == Operation.DELETE else copied.key
        content = UndecodedRecord(
            RECORD_CODEC,
            b64encode(json.dumps(to_plain(record)).encode()).decode("ascii"),
            f"{failed.reason}; change the cast of the column, or set on_unrepresentable",
            op=record.op,
            known=_values(copied),
            columns=failed.failed,
        )
        content = without_bytes(content) if drops_bytes(self.task.rule) else content
        return replace(
            copied,
            op=Operation.UNREADABLE,
            key=own_key,
            key_before=None,
            before=None,
            after=canonical(to_plain(content)),
            before_complete=False,
            after_complete=False,
            refetch=(),
        )


def drops_bytes(rule: TableRule) -> bool:
    return bool(rule.columns.hidden or rule.columns.exclude or rule.sensitive)


class CopiedStream:
    """The items of a stream."""

    def __init__(self, tasks: Sequence[TableTask], key: bytes) -> None:
        self._tables = {task.table: CopiedRecords(task, key) for task in tasks if changes_columns(task.rule)}
        self._without_bytes = {task.table for task in tasks if drops_bytes(task.rule)} - self._tables.keys()

    def items(self, items: Iterable[StreamItem]) -> Iterator[StreamItem]:
        from airflow_cdc_provider.connectors.copied.columns import copied_block

        for item in items:
            if isinstance(item, (ChangeRecord, Block, TableSchema)) and item.table in self._tables:
                table = self._tables[item.table]
                if isinstance(item, Block):
                    yield from copied_block(item, table)
                else:
                    yield table.record(item) if isinstance(item, ChangeRecord) else table.schema(item)
            elif isinstance(item, ChangeRecord) and item.table in self._without_bytes and (content := undecoded(item)):
                yield replace(item, after=canonical(to_plain(without_bytes(content))))
            else:
                yield item


def _source_name(column: Column) -> str:
    return column.origin.name if column.origin else column.name


def _values(record: ChangeRecord) -> dict[str, Any]:
    image = record.before if record.op == Operation.DELETE else record.after
    values: dict[str, Any] = json.loads(image or "{}")
    return values

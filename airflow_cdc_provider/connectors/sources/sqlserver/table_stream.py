"""The changes of one table in a window: its segments, its schemas, and its holes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from airflow_cdc_provider.connectors.changed_columns import changed_columns, schema_record
from airflow_cdc_provider.connectors.source import HoleFound, StreamItem
from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.alterations import (
    Alteration,
    adds_null,
    named_in,
    rewritten,
    type_changes,
)
from airflow_cdc_provider.connectors.sources.sqlserver.capture_instances import Coverage, Segment, cover, within
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CaptureInstance, CatalogTable
from airflow_cdc_provider.connectors.sources.sqlserver.changes import ChangeDecoder
from airflow_cdc_provider.connectors.sources.sqlserver.client import Session
from airflow_cdc_provider.connectors.sources.sqlserver.positions import FIRST, key_after, key_before, lsn_text
from airflow_cdc_provider.connectors.sources.sqlserver.row_images import RowReader
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import EXPIRED, UNLOGGED
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.spec.selected_columns import selected_columns
from airflow_cdc_provider.core.table.copy_view import CopyView
from airflow_cdc_provider.core.table.schema import TEXT_OF, Column, TableSchema


class TableStream:
    """``table``: as in the catalog, None if it does not exist; ``instances``: oldest first; ``coverage``: of the
    window."""

    def __init__(
        self,
        session: Session,
        task: TableTask,
        table: CatalogTable | None,
        instances: Sequence[CaptureInstance],
        alterations: Sequence[Alteration],
        coverage: Coverage,
        epoch: int,
    ) -> None:
        self.coverage = coverage
        self._session, self._task, self._table, self._epoch = session, task, table, epoch
        self._alterations = alterations
        self._current: TableSchema | None = None
        self._announced: set[str] = set()
        self._lost_reported = False
        self._unknown = frozenset(
            name
            for name in task.schema.names
            if any(view.lacks(name) for view in task.views) and not self._is_null_in_older_rows(name, instances)
        )

    def read(self, after: int, upto: int, times: Mapping[int, datetime]) -> Iterator[StreamItem]:
        """The items of the commits in ``(after, upto]``. ``times``: commit LSN → commit time in UTC."""
        if self.coverage.lost and not self._lost_reported:
            self._lost_reported = True
            yield self._lost(self.coverage.lost)
        for one in self._alterations:
            for view in self._task.views if after < one.lsn <= upto else ():
                if changes := _changed_values(view, one):
                    yield replace(self._hole(one.lsn, "; ".join(changes)), copies=self._some(view))
        for segment in within(self.coverage.segments, after, upto):
            yield from self._read_segment(segment, times)

    def end(self, after: int, upto: int, starts: Mapping[int, int]) -> Iterator[StreamItem]:
        """Call it when ``(after, upto]`` has been read. ``starts``: object id of a change table → its ``start`` now."""
        for segment in within(self.coverage.segments, after, upto):
            start = starts.get(segment.instance.object_id)
            if start is None or start > segment.after + 1:
                yield self._lost(upto + 1 if start is None else start)

    def changed_columns(self, limit: int) -> list[StreamItem]:
        """New columns that are captured at the limit, and that no change of the window contains."""
        if not self.coverage.segments:
            return []
        schema, _ = self._schema_of(self.coverage.segments[-1].instance)
        if self._current is None and not any(view.lacks(name) for view in self._task.views for name in schema.names):
            return []
        task, name = replace(self._task, schema=schema), self._task.table
        latest = {name: self._current} if self._current else {}
        position = f'{{"lsn":"{lsn_text(limit)}"}}'
        return changed_columns([task], latest, key_after(self._epoch, limit), position, self._has_unknown)

    def _read_segment(self, segment: Segment, times: Mapping[int, datetime]) -> Iterator[StreamItem]:
        schema, columns = self._schema_of(segment.instance)
        if not set(schema.key) <= set(schema.names):
            yield self._hole(segment.upto, f"capture instance {segment.instance.name} has no key column")
            return
        query = queries.changes(segment.instance.change_table, columns, segment.after, segment.upto)
        decoder = ChangeDecoder(RowReader(self._task, columns, schema), self._epoch, times, self._allows_two_per_key())
        last = ""
        for item in decoder.decode(self._session.rows(query)):
            if isinstance(item, ChangeRecord):
                if self._current is not schema:
                    yield from self._new_schema(schema, item)
                last = item.order_key
            yield item
        yield from self._not_captured(segment, schema, last)
        if self._table and segment.instance.misses_switches(self._table):
            yield self._hole(segment.upto, f"capture instance {segment.instance.name} lets partitions be switched")

    def _new_schema(self, schema: TableSchema, first: ChangeRecord) -> Iterator[StreamItem]:
        known = [self._current] if self._current else [view.schema for view in self._task.views]
        self._current = schema
        if schema.schema_id not in self._announced:
            self._announced.add(schema.schema_id)
            yield schema
        changed = [before for before in known if before is None or before.shape != schema.shape]
        if changed:
            added = {name for before in changed if before for name in set(schema.names) - set(before.names)}
            order_key = first.order_key[: -len(FIRST)] + FIRST
            yield schema_record(schema, order_key, first.position, self._has_unknown(self._task, frozenset(added)))

    def _not_captured(self, segment: Segment, schema: TableSchema, last: str) -> Iterator[HoleFound]:
        """Changes after a column was added that the newest capture instance does not capture. ``last``: the order key
        of the last change."""
        missing = [name for name in self._task.schema.names if name not in schema.names]
        if not missing or segment.instance is not self.coverage.segments[-1].instance:
            return
        added = min((self._added_at(name) for name in missing), default=0)
        if last > key_after(self._epoch, added):
            yield self._hole(segment.upto, uncaptured(segment.instance.name, missing))

    def _schema_of(self, instance: CaptureInstance) -> tuple[TableSchema, list[SqlColumn]]:
        """The schema of its changes, and the columns of the change table that they are read from."""
        task, own = self._task, {column.name: column for column in instance.columns}
        described = self._table.columns if self._table else ()
        captured = [own[one.name] for one in described if one.supported and instance.captures(one) and not one.computed]
        key = task.schema.key
        columns = selected_columns(task.rule, [self._known(column) for column in captured], key)
        schema = TableSchema(task.table, columns, key, task.schema.regime)
        if schema.shape == task.schema.shape:
            schema = task.schema
        read = {column.text_of or column.name for column in schema.columns}
        return schema, [column for column in captured if column.name in read]

    def _known(self, column: SqlColumn) -> Column:
        """As in the table, if both have the same type: columns of a change table are nullable."""
        assert self._table is not None
        found = self._table.find(column.name)
        return found.column if found and found.native == column.native else column.column

    def _some(self, view: CopyView) -> tuple[str, ...]:
        return () if len(self._task.views) == 1 else (view.copy,)

    def _is_null_in_older_rows(self, name: str, instances: Sequence[CaptureInstance]) -> bool:
        """Whether a new column is NULL in every row that did not change since a capture instance captures it."""
        column = self._table.find(name.removeprefix(TEXT_OF)) if self._table else None
        added = adds_null(self._alterations, column.name) if column and not column.filled else None
        starts = [one.start for one in instances if column and one.start and one.captures(column)]
        if column is None or added is None or not starts:
            return False
        if starts[0] - 1 <= added.lsn:
            return True
        coverage = cover(instances, added.lsn, starts[0] - 1)
        parts = [(one.instance.change_table, one.after, one.upto) for one in coverage.segments]
        return not coverage.lost and next(self._session.rows(queries.any_change(parts)), None) is None

    def _has_unknown(self, _task: TableTask, columns: frozenset[str]) -> bool:
        return bool(columns & self._unknown)

    def _allows_two_per_key(self) -> bool:
        """An update of several keys of a clustered index is logged so that a key is left before it is taken."""
        table = self._table
        return table is None or not table.clustered or table.schema.key != self._task.schema.key

    def _added_at(self, name: str) -> int:
        return min((one.lsn for one in self._alterations if named_in(one, name)), default=0)

    def _hole(self, lsn: int, detail: str) -> HoleFound:
        """Changes up to and with this commit are not as in the source."""
        return HoleFound(self._task.table, UNLOGGED, key_after(self._epoch, lsn), detail)

    def _lost(self, before: int) -> HoleFound:
        """Changes before this commit are not in any change table."""
        detail = f"no change table has the changes before commit {lsn_text(before)}: cleanup removed them, or the table"
        detail += " was not captured"
        return HoleFound(self._task.table, EXPIRED, key_before(self._epoch, before), detail)


def _changed_values(view: CopyView, alteration: Alteration) -> list[str]:
    if view.uncopied:
        during = "was altered while the table was copied"
        return [f"column {change.column} {during}" for change in type_changes(alteration.text)]
    columns = view.schema.columns if view.schema else ()
    return list(rewritten(alteration, {column.name: column.native for column in columns}))


def uncaptured(instance: str, columns: Sequence[str]) -> str:
    return f"capture instance {instance} does not capture {', '.join(columns)}"

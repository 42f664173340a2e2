"""The state of a table while a stream is read: its current schema, and a layout per event schema."""

from __future__ import annotations

from collections.abc import Callable

from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.schema import TableSchema


class ObjectTable:
    """The object is described at its first event, and again when an event has another schema or more digits than
    described, so that a description is never older than the events it is used for. ``schema`` is the schema of the next
    records."""

    def __init__(self, task: TableTask, describe: Callable[[str], ObjectSchema]) -> None:
        self.task = task
        self.schema = task.schema
        self._describe = describe
        self._described: ObjectSchema | None = None
        self._layouts: dict[str, EventLayout] = {}
        self._known_events: set[str] = set()
        self._rounded: frozenset[str] = frozenset()
        self._announced: TableSchema | None = None

    def layout(self, event: EventSchema) -> EventLayout:
        """Raises what ``describe`` raises."""
        layout = self._layouts.get(event.schema_id)
        if layout is None:
            described = self._describe_for(event)
            layout = self._layouts[event.schema_id] = EventLayout(event, described, self.schema, self._rounded)
        return layout

    def describe_again(self, column: str) -> None:
        """After a value of this column with more digits than described. If its type is the same now, its further digits
        are those that Salesforce keeps and does not show. Raises what ``describe`` raises."""
        before = {one.name: one.type for one in self.schema.columns}
        self._describe_now()
        same = {one.name for one in self.schema.columns if before.get(one.name) == one.type}
        self._rounded = (self._rounded | {column}) & same
        self._layouts.clear()

    def announce_schema(self) -> bool:
        """Mark ``schema`` as announced. Returns whether it was not before."""
        is_new, self._announced = self._announced is not self.schema, self.schema
        return is_new

    def schema_differs_from_target(self) -> bool:
        copied = [view.schema for view in self.task.views if view.schema]
        return any(schema.shape != self.schema.shape for schema in copied)

    def _describe_for(self, event: EventSchema) -> ObjectSchema:
        if self._described is None or event.schema_id not in self._known_events:
            self._known_events.add(event.schema_id)
            return self._describe_now()
        return self._described

    def _describe_now(self) -> ObjectSchema:
        described = self._described = self._describe(self.task.table)
        current = selected_schema(self.task.rule, described.schema)
        if current.shape != self.schema.shape:
            self.schema = current
            self._layouts.clear()
        return described

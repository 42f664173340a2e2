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
    """The object is described at its first event, and again when an event has unknown fields, so that a description is
    never older than the events it is used for. ``schema`` is the schema of the next records."""

    def __init__(self, task: TableTask, describe: Callable[[str], ObjectSchema]) -> None:
        self.task = task
        self.schema = task.schema
        self._describe = describe
        self._described: ObjectSchema | None = None
        self._layouts: dict[str, EventLayout] = {}
        self._known_fields: frozenset[str] = frozenset()
        self._announced: TableSchema | None = None

    def layout(self, event: EventSchema) -> EventLayout:
        """Raises what ``describe`` raises."""
        layout = self._layouts.get(event.schema_id)
        if layout is None:
            described = self._describe_for(event)
            layout = self._layouts[event.schema_id] = EventLayout(event, described, self.schema)
        return layout

    def announce_schema(self) -> bool:
        """Mark ``schema`` as announced. Returns whether it was not before."""
        is_new, self._announced = self._announced is not self.schema, self.schema
        return is_new

    def schema_differs_from_target(self) -> bool:
        copied = [view.schema for view in self.task.views if view.schema]
        return any(schema.shape != self.schema.shape for schema in copied)

    def _describe_for(self, event: EventSchema) -> ObjectSchema:
        names = event.names
        if self._described is None or not names <= self._known_fields:
            self._described = self._describe(self.task.table)
            self._known_fields |= names
            current = selected_schema(self.task.rule, self._described.schema)
            if current.shape != self.schema.shape:
                self.schema = current
                self._layouts.clear()
        return self._described

"""A table while a stream is read: its schema as the events go by, and a layout per event schema."""

from __future__ import annotations

from collections.abc import Callable

from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.table_layout import EventLayout
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.spec.selection import selected_schema
from airflow_cdc_provider.core.table.schema import LogicalType, TableSchema


class ObjectTable:
    """Described when its first event comes, and again when an event brings fields that nobody knew: a description is
    never older than the event it is used for. ``schema`` is the schema of the records that follow."""

    def __init__(self, task: TableTask, describe: Callable[[str], ObjectSchema]) -> None:
        self.task = task
        self.schema = task.schema
        self._describe = describe
        self._described: ObjectSchema | None = None
        self._layouts: dict[str, EventLayout] = {}
        self._known: frozenset[str] = frozenset()
        self._told: TableSchema | None = None

    def layout(self, event: EventSchema) -> EventLayout:
        """Raises what ``describe`` raises."""
        layout = self._layouts.get(event.schema_id)
        if layout is None:
            described = self._described_for(event)
            layout = self._layouts[event.schema_id] = EventLayout(event, described, self.schema)
        return layout

    def unannounced(self) -> bool:
        """Whether records of ``schema`` follow for the first time. Asking makes it announced."""
        news, self._told = self._told is not self.schema, self.schema
        return news

    def is_change(self) -> bool:
        """Whether the target holds the table with other columns or types, or another key."""
        held = self.task.control.schema if self.task.control else None
        return held is not None and shape(held) != shape(self.schema)

    def _described_for(self, event: EventSchema) -> ObjectSchema:
        names = event.names
        if self._described is None or not names <= self._known:
            self._described = self._describe(self.task.table)
            self._known |= names
            now = selected_schema(self.task.rule, self._described.schema)
            if shape(now) != shape(self.schema):
                self.schema = now
                self._layouts.clear()
        return self._described


def shape(schema: TableSchema) -> tuple[dict[str, LogicalType], tuple[str, ...]]:
    """What makes two schemas the same to a stream: names and types of the columns, and the key."""
    return {column.name: column.type for column in schema.columns}, schema.key

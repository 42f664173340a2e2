"""All event schemas, also earlier ones. The id is a hash, so an object may have an earlier schema again."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.salesforce.event_schema import EventSchema
from airflow_cdc_provider.sandbox.salesforce.storage import Store


class Schemas:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._current: dict[str, EventSchema] = {}
        self._by_id: dict[str, EventSchema] = {}

    def current(self, name: str) -> EventSchema:
        object_type = self._store.table(name).type
        known = self._current.get(name)
        if known is None or known.type is not object_type:
            known = self._current[name] = EventSchema(object_type)
            self._by_id.setdefault(known.id, known)
        return known

    def by_id(self, schema_id: str) -> EventSchema | None:
        for name in self._store.tables:
            self.current(name)
        return self._by_id.get(schema_id)

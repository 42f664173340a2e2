"""The databases of the instance."""

from __future__ import annotations

from airflow_cdc_provider.sandbox.spanner.clock import Clock
from airflow_cdc_provider.sandbox.spanner.database import Database
from airflow_cdc_provider.sandbox.spanner.errors import already_exists, not_found


class Databases:
    def __init__(self) -> None:
        self._clock = Clock()
        self._databases: dict[str, Database] = {}

    def create(self, name: str) -> Database:
        if name in self._databases:
            raise already_exists(f"Database already exists: {name}")
        self._databases[name] = Database(name, self._clock)
        return self._databases[name]

    def get(self, name: str) -> Database:
        found = self._databases.get(name)
        if found is None:
            raise not_found(f"Database not found: {name}")
        return found

    def drop(self, name: str) -> None:
        self._databases.pop(name, None)

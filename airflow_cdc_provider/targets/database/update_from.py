"""The statements of dialects that join in UPDATE … FROM and DELETE … USING."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T


class UpdatesFrom(ABC):
    @abstractmethod
    def quoted(self, name: str) -> str: ...

    def column_id(self, name: str) -> str:
        """By default, a database distinguishes all names that it can be given."""
        return self.quoted(name)

    def update(self, target: str, staged: str, condition: str, values: Mapping[str, str]) -> str:
        sets = ", ".join(f"{self.quoted(name)} = {value}" for name, value in values.items())
        return f"UPDATE {target} AS {T} SET {sets} FROM {staged} AS {S} WHERE {condition}"

    def deleted_row(self, target: str) -> str:
        return T

    def delete(self, target: str, staged: str, condition: str) -> str:
        return f"DELETE FROM {target} AS {T} USING {staged} AS {S} WHERE {condition}"

    def delete_where(self, target: str, condition: str) -> str:
        return f"DELETE FROM {target} AS {T} WHERE {condition}"

"""The columns of messages with the ids of those of the copy: a renamed column has its first name as its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.debezium.columns_by_history import column_ids
from airflow_cdc_provider.connectors.decoders.debezium.table_history import TableHistory
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class ColumnIdentities:
    """``histories``: reads the statements of the schema-change topic, if a table has a column that its copy lacks."""

    def __init__(self, settings: DecoderSettings, histories: Callable[[], Sequence[TableHistory]]) -> None:
        self._settings = settings
        self._histories = histories

    def identified(self, copy: TableSchema, columns: Sequence[Column]) -> tuple[list[Column], list[str]]:
        """``columns``: of a message. The second item describes those that were not copied under their former name."""
        copied = [column for column in copy.columns if not column.text_of]
        ids, uncopied = {column.name: column.id for column in copied}, list[str]()
        ignored, tables = self._settings.ignored(copy.table), self._settings.names_of(copy.table)
        names = [column.name for column in columns if column.name not in ignored]
        if not ids.keys() >= set(names):

            def is_copied(name: str) -> bool:
                return name not in ignored and not self._settings.excludes(copy.table, name)

            if found := column_ids(self._histories(), tables, copied, names, is_copied):
                ids |= found.ids
                uncopied = [
                    f"column {old}, which is not copied, was renamed to {new}" for new, old in found.uncopied.items()
                ]
        return [replace(column, id=ids.get(column.name, "")) for column in columns], uncopied


def present_key(key: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    """``key``: as its columns were called first."""
    names = {column.name for column in columns}
    present = {column.id: column.name for column in columns if column.id}
    return tuple(name if name in names else present.get(name, name) for name in key)


def with_ids_of(schema: TableSchema, other: TableSchema) -> TableSchema:
    """``other``: with columns of the same names."""
    ids = {column.name: column.id for column in other.columns}
    return replace(schema, columns=tuple(replace(column, id=ids[column.name]) for column in schema.columns))

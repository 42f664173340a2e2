"""The columns of messages with the ids of those of the copy: a renamed column has its first name as its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings
from airflow_cdc_provider.connectors.decoders.debezium.connect_json import ConnectReader
from airflow_cdc_provider.connectors.decoders.debezium.statements import read_statements
from airflow_cdc_provider.connectors.decoders.debezium.table_versions import Versions, column_ids, versions_of_tables
from airflow_cdc_provider.core.table.schema import Column, TableSchema


class ColumnIdentities:
    """Reads the statements of the schema-change topic if a table has a column that its copy lacks."""

    def __init__(self, settings: DecoderSettings) -> None:
        self._settings = settings

    def identified(self, copy: TableSchema, columns: Sequence[Column]) -> tuple[list[Column], list[str]]:
        """``columns``: of a message. The second item describes those that were not copied under their former name."""
        copied = [column for column in copy.columns if not column.text_of]
        ids, uncopied = {column.name: column.id for column in copied}, list[str]()
        ignored = self._settings.ignored(copy.table)
        names = [column.name for column in columns if column.name not in ignored]
        if not ids.keys() >= set(names):

            def is_copied(name: str) -> bool:
                return name not in ignored and not self._settings.excludes(copy.table, name)

            if found := column_ids(self._tables, copy.table, copied, names, is_copied):
                ids |= found.ids
                uncopied = [
                    f"column {old}, which is not copied, was renamed to {new}" for new, old in found.uncopied.items()
                ]
        return [replace(column, id=ids.get(column.name, "")) for column in columns], uncopied

    @cached_property
    def _tables(self) -> list[Versions]:
        return versions_of_tables(read_statements(self._payloads()))

    def _payloads(self) -> Iterator[Any]:
        reader = ConnectReader()
        for message in self._settings.statements():
            if message.value is None or message.reason:
                continue
            try:
                yield reader.read(message.value, message.topic, message.value_schema).payload
            except DecodeError:
                continue


def present_key(key: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
    """``key``: as its columns were called first."""
    names = {column.name for column in columns}
    present = {column.id: column.name for column in columns if column.id}
    return tuple(name if name in names else present.get(name, name) for name in key)

"""What topics and files of messages have in common as source connectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import ClassVar

from airflow_cdc_provider.connectors.decoders.common.message import FollowsTables, Message, RenamedTable
from airflow_cdc_provider.connectors.schema_registry.check import registry_problems
from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.connectors.source import KeepsNoState
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.connectors.transports.messages.check import table_problems
from airflow_cdc_provider.connectors.transports.messages.declared_schemas import declared_schemas
from airflow_cdc_provider.connectors.transports.messages.decoding import Format
from airflow_cdc_provider.connectors.transports.messages.discovery import (
    DiscoveredTables,
    discover_tables,
    tables_without_rows,
)
from airflow_cdc_provider.connectors.transports.messages.options import FeedOptions
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.table.identity import (
    NO_UNLOGGED_CHANGES,
    THE_TABLE,
    TableIdentity,
    TablePartition,
    UnloggedChanges,
)
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.core.table.special_values import FEED, Specials, may_hold


class FeedSource(KeepsNoState, ABC):
    """Its tables are those in the first messages of its topics or files, and the declared ones."""

    unseen: ClassVar[str] = (
        "changes that the connector or feed did not write, such as schema changes that rewrite rows: "
        "docs/guides/event-feeds.md"
    )
    has_transactions: ClassVar[bool] = False
    exact_snapshot: ClassVar[bool] = True
    duplicates_within: ClassVar[timedelta] = timedelta(0)

    def __init__(self, source: Source, options: FeedOptions) -> None:
        self.format = Format(options.format, source.options)
        self._schemas_path = options.schemas
        self._max_silence = options.max_silence
        self._schemas: RegisteredSchemas | None = None
        self._registry: RegistryClient | None = None

    def use_registry(self, access: RegistryAccess) -> None:
        """Messages are converted with the schemas of a registry from now on."""
        from airflow_cdc_provider.connectors.schema_registry.conversion import MessageConverter

        self._registry = RegistryClient(access.connection)
        self._schemas = RegisteredSchemas(self._registry, access.files)
        self.format = replace(self.format, converter=MessageConverter(self._schemas))

    def tls_warnings(self) -> list[Problem]:
        return self._registry.tls_warnings() if self._registry is not None else []

    @abstractmethod
    def transport_problems(self, tables: Sequence[TableTask]) -> Iterable[Problem]:
        """Problems of the topics or files, and not of single tables."""

    @abstractmethod
    def read_heads(self) -> list[Message]:
        """The first messages of every topic or file."""

    @abstractmethod
    def read_statements(self) -> list[Message]:
        """All messages of the schema-change topics, or of the files of one, in their order."""

    @abstractmethod
    def last_arrival(self) -> datetime | None:
        """When the newest message was written, of any topic or file; None if there is none. UTC."""

    def silent_since(self) -> datetime | None:
        last = self.last_arrival() if self._max_silence else None
        return last if last and self._max_silence and datetime.now(UTC) - last > self._max_silence else None

    def warnings(self) -> list[Problem]:
        if self._max_silence:
            return []
        return [
            Problem(
                "SRC135",
                "a writer that stops is not noticed: without events, the copies stay fresh",
                "source.max_silence",
                "not set",
                do="set the longest time without an event, and read the topic of the connector's heartbeats",
            )
        ]

    def check(self, tables: Sequence[TableTask]) -> list[Problem]:
        try:
            if problems := registry_problems(self._raw_heads, self._schemas):
                return problems
            without_rows = tables_without_rows(self.format, self._heads, self.discovered.schemas)
            return [*self.transport_problems(tables), *table_problems(tables, self.discovered, without_rows)]
        except CheckFailed as error:
            return list(error.problems)

    def tables(self) -> list[TableSchema]:
        """Renamed tables under their present names, with the columns of their first messages under any name."""
        names = sorted(self.discovered.schemas.keys() - self._renamed.keys())
        return [schema for name in names if (schema := self.first_schema(self.discovered, name))]

    def first_schema(self, discovered: DiscoveredTables, table: str) -> TableSchema | None:
        """``table``: its name now. None if no message has its columns."""
        names = [name for name in self.names_of(table) if name in discovered.schemas]
        with_rows = [name for name in names if name in discovered.first_keys]
        first = min(with_rows, key=lambda name: discovered.first_keys[name], default=table)
        return replace(discovered.schemas[first], table=table) if first in names else None

    def identities(self, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
        """Their names: a copy that has rows from under a name has found the table there, whatever statements the
        topic still has."""
        return {table: _identity(table) for table in tables} if self.discovered.schema_topics else {}

    def not_streamed(
        self, table: str, position: Position, now: TableIdentity, changes: UnloggedChanges, truncated: bool
    ) -> UnloggedChanges:
        return NO_UNLOGGED_CHANGES

    def present_names(self, tables: Mapping[str, TableIdentity | None]) -> Mapping[str, str]:
        found = {}
        for table, identity in tables.items():
            known = identity.partitions.get(THE_TABLE) if identity else None
            name = known.name if known else table
            found[table] = self._renamed.get(name, name)
        return {table: name for table, name in found.items() if name != table}

    def renames_hidden(self) -> Problem | None:
        decoder = self.format.decoder()
        sends = isinstance(decoder, FollowsTables) and any(map(decoder.has_statements, self._heads))
        if self.discovered.schema_topics or not sends:
            return None
        return Problem(
            "SRC140",
            "renamed columns and tables count as dropped and new ones",
            "source",
            found="no message of the connector's schema-change topic",
            allowed="the messages of that topic among the others; or `rename: stop`",
            do="read that topic, too: its name is the connector's `topic.prefix`",
        )

    def former_names(self, table: str) -> tuple[str, ...]:
        return tuple(sorted(former for former, one in self._followed.items() if one.name == table))

    def former_names_of_all(self) -> dict[str, set[str]]:
        """By each later name of a renamed table."""
        found: dict[str, set[str]] = {}
        for former, one in self._followed.items():
            for name in one.since:
                found.setdefault(name, set()).add(former)
        return found

    def names_of(self, table: str) -> frozenset[str]:
        """All names that a table has had, whatever name is given."""
        now = self._renamed.get(table, table)
        return frozenset({table, now, *self.former_names(now)})

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """Former name → name now."""
        return {former: one.name for former, one in self._followed.items()}

    @cached_property
    def _followed(self) -> dict[str, RenamedTable]:
        """By former name. A table has a name now if its first messages under each later name are later than the
        statements: else other tables had these names before."""
        if not self.discovered.schema_topics:
            return {}
        decoder, first = self.format.decoder(statements=self.read_statements), self.discovered.first_keys
        if not isinstance(decoder, FollowsTables):
            return {}
        return {
            former: one
            for former, one in decoder.renamed_tables().items()
            if one.name in self.discovered.schemas
            and all(first.get(name, since) >= since for name, since in one.since.items())
        }

    def may_hold(self, column: Column) -> Specials:
        return may_hold(column, FEED)

    def reread(self, record: ChangeRecord, table: TableTask, schema: TableSchema) -> list[ChangeRecord]:
        return self.format.reread(record, table, schema)

    def discover(self, heads: Iterable[Message]) -> DiscoveredTables:
        return discover_tables(self.format, heads, declared_schemas(self._schemas_path))

    @cached_property
    def discovered(self) -> DiscoveredTables:
        return self.discover(self._heads)

    @cached_property
    def _heads(self) -> list[Message]:
        return list(self.format.converter.messages(self._raw_heads))

    @cached_property
    def _raw_heads(self) -> list[Message]:
        return self.read_heads()


def _identity(name: str) -> TableIdentity:
    return TableIdentity("", {}, 0, partitions={THE_TABLE: TablePartition(name, name)})

"""A message as a transport delivers it, and the interface of all decoders. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import HoleFound, Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.server_orders import ServerOrder
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selected_columns import selects
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import without_quotes

if TYPE_CHECKING:
    import pyarrow as pa

SMALL_BATCH = 24
"""Up to this number, messages are decoded one by one, which is faster than decoding them as columns."""

Headers = tuple[tuple[str, bytes | None], ...]
Item = ChangeRecord | TableSchema | Ignored | HoleFound
"""A TableSchema precedes the first record that uses it."""


class Message(NamedTuple):
    """``topic``: a topic, or the path of a file. ``offset``: in ``channel`` (a topic partition, or the file): the Kafka
    offset, or the line number. ``at_ms``: when the message was written to its topic; 0 in files. ``reason``: why the
    transport could not convert the key or the value; empty if they are as the decoder expects them. ``value_schema``,
    ``key_schema``: the texts of their Connect schemas, if the transport has them, so that value and key are payloads
    alone: the texts are long, and the same in many messages. ``by_line``: the offset is the number of a line or row,
    which does not order the messages of different files."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    topic: str = ""
    channel: str = ""
    offset: int = 0
    at_ms: int = 0
    reason: str = ""
    value_schema: str = ""
    key_schema: str = ""
    by_line: bool = False

    @property
    def order(self) -> int | None:
        """The offset; None if it orders nothing."""
        return None if self.by_line else self.offset

    @property
    def whole_value(self) -> bytes | None:
        """With its schema."""
        return _whole(self.value, self.value_schema)

    @property
    def whole_key(self) -> bytes | None:
        return _whole(self.key, self.key_schema)


def _whole(payload: bytes | None, schema: str) -> bytes | None:
    return b'{"schema":%b,"payload":%b}' % (schema.encode(), payload) if schema and payload is not None else payload


@dataclass(frozen=True)
class MessageColumns:
    """Messages of one topic, read without JSON. ``messages``: as they arrived. ``values``, ``keys``: a struct for each
    of them. ``value_schema``, ``key_schema``: as in ``Message``. ``tombstones``: the number of messages without a value
    whose key is that of one of ``messages``."""

    messages: Sequence[Message]
    values: pa.StructArray
    keys: pa.StructArray
    value_schema: str
    key_schema: str
    tombstones: int = 0

    @property
    def topic(self) -> str:
        return self.messages[0].topic

    def take(self, rows: Sequence[int]) -> MessageColumns:
        """Without the tombstones."""
        import pyarrow as pa

        messages = [self.messages[row] for row in rows]
        indexes = pa.array(rows, pa.int64())
        columns = {"values": self.values.take(indexes), "keys": self.keys.take(indexes)}
        return replace(self, messages=messages, **columns, tombstones=0)

    def json_messages(self) -> list[Message]:
        """With the JSON that Connect's own converter would have sent, and their schemas."""
        from airflow_cdc_provider.connectors.decoders.common.arrow_json import json_bytes

        return [
            message._replace(value=value, key=key, value_schema=self.value_schema, key_schema=self.key_schema)
            for message, value, key in zip(self.messages, json_bytes(self.values), json_bytes(self.keys), strict=True)
        ]


@dataclass(frozen=True)
class CopiedTable:
    """A table that is copied. ``schema``: declared or discovered; None if unknown. ``copy_schema``: the schema of the
    copy; None if there is no copy yet. ``ignored``: columns that an operator has decided not to copy."""

    rule: TableRule
    schema: TableSchema | None = None
    copy_schema: TableSchema | None = None
    ignored: tuple[str, ...] = ()


def no_statements() -> tuple[Message, ...]:
    return ()


@dataclass(frozen=True)
class DecoderSettings:
    """``tables``: the tables to decode, None for all; messages of other tables are counted. ``options``: the keys of
    the source type in the YAML. ``guess``: infer unknown schemas from the messages, for display only. ``statements``:
    reads the messages of schema-change topics, all that exist now. ``names``: name of a table in messages → another
    name of its copy, or empty if it has none."""

    epoch: int = 1
    tables: Mapping[str, CopiedTable] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    guess: bool = False
    statements: Callable[[], Iterable[Message]] = no_statements
    names: Mapping[str, str] = field(default_factory=dict)

    def copied_name(self, table: str) -> str:
        """``table``: as messages name it."""
        return self.names.get(table, table)

    def table_of_topic(self, text: str) -> str:
        """``text``: the name of a table, without quotes, in that of a topic. Empty if several tables that are copied
        have it."""
        named = self._without_quotes.get(text, ())
        return "" if len(named) > 1 else self.copied_name(next(iter(named), text))

    @cached_property
    def _without_quotes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name in (*(self.tables or ()), *self.names):
            found.setdefault(without_quotes(name), set()).add(name)
        return found

    def names_of(self, table: str) -> frozenset[str]:
        """All names that messages have for a table that is copied as ``table``."""
        return frozenset({table, *(name for name, copied in self.names.items() if copied == table)})

    def includes(self, table: str) -> bool:
        return self.tables is None or table in self.tables

    def rule(self, table: str) -> TableRule | None:
        copied = self._copied(table)
        return copied.rule if copied else None

    def schema(self, table: str) -> TableSchema | None:
        copied = self._copied(table)
        return copied.schema if copied else None

    def copy_schema(self, table: str) -> TableSchema | None:
        copied = self._copied(table)
        return copied.copy_schema if copied else None

    def ignored(self, table: str) -> tuple[str, ...]:
        copied = self._copied(table)
        return copied.ignored if copied else ()

    def excludes(self, table: str, column: str) -> bool:
        rule = self.rule(table)
        return rule is not None and not selects(rule, column)

    def _copied(self, table: str) -> CopiedTable | None:
        return self.tables.get(table) if self.tables else None


class Decoder(Protocol):
    """Constructed from DecoderSettings. Its state is a cache and does not affect results, except that each schema is
    returned once. ``codec``: names the format in quarantine. ``whole_rows_remedy``: how to configure the feed of a
    ``{table}`` to send whole rows; empty if it always does. ``reads_avro``: an Avro file is one message; otherwise each
    of its rows is a message, as JSON. ``one_table_per_topic``: the table of a message is that of its topic."""

    codec: str
    whole_rows_remedy: str
    reads_avro: bool
    one_table_per_topic: bool

    def decode(self, message: Message) -> list[Item]:
        """Never raises: a message that cannot be decoded becomes an ``unreadable`` record of its table, or of the table
        with the empty name if the table is unknown. Callers must not skip such records."""


class SnapshotWatch(Protocol):
    def observe(self, message: Message) -> None: ...

    def observe_columns(self, columns: MessageColumns) -> None:
        """As ``observe`` of each message as JSON."""

    @property
    def snapshots(self) -> tuple[SourceSnapshot, ...]:
        """The full snapshots that the messages observed so far belong to."""


class ServerWatch(Protocol):
    def observe(self, message: Message) -> None: ...

    def observe_columns(self, columns: MessageColumns) -> None:
        """As ``observe`` of each message as JSON."""

    @property
    def orders(self) -> tuple[ServerOrder, ...]:
        """Those of the copied tables in the messages observed so far."""


@runtime_checkable
class NamesServers(Decoder, Protocol):
    """A decoder of messages whose positions are those of the server that they name."""

    def server_watch(self) -> ServerWatch: ...


@runtime_checkable
class MarksSnapshots(Decoder, Protocol):
    """A decoder of messages in which rows of a full snapshot are marked."""

    def snapshot_watch(self) -> SnapshotWatch: ...


@runtime_checkable
class HasTombstones(Decoder, Protocol):
    """``tombstones_follow_deletes``: whether a message without a value follows the delete of the row with its key, and
    says nothing more."""

    tombstones_follow_deletes: bool


@dataclass(frozen=True)
class RenamedTable:
    """``name``: that of the table now. ``since``: each later name → from where on it is that of the table, a prefix of
    order keys without their epoch."""

    name: str
    since: Mapping[str, str]


@runtime_checkable
class FollowsTables(Protocol):
    """A decoder that finds renamed tables by the statements in schema-change topics."""

    def renamed_tables(self) -> Mapping[str, RenamedTable]:
        """By each former name that no other table has got since then."""

    def has_statements(self, message: Message) -> bool:
        """Whether the writer of this message writes such a topic, too."""


@runtime_checkable
class DecodesMany(Decoder, Protocol):
    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """The results of ``decode`` for each message, in any order: order keys define the order."""


@runtime_checkable
class DecodesColumns(DecodesMany, Protocol):
    """``reads_columns``: whether ``decode_columns`` is faster than decoding JSON."""

    reads_columns: bool

    def decode_columns(self, columns: MessageColumns) -> Iterator[Item | Block]:
        """As ``decode_many`` of the messages as JSON, and of the tombstones."""

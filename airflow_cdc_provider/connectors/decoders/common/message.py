"""A message as a transport hands it out, and what every decoder of messages answers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.source import HoleFound, Ignored
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema

FEW = 24
"""So many messages are decoded one by one: columns would take longer."""

Headers = tuple[tuple[str, bytes | None], ...]
Item = ChangeRecord | TableSchema | Ignored | HoleFound
"""A TableSchema comes before the first record decoded with it."""


class Message(NamedTuple):
    """``topic`` is a topic, or the path of a file. ``offset`` is the place in ``channel`` (a topic's partition, or the
    file): the offset, or the number of the line. ``at_ms``: when it was written into its topic; 0 in files."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    topic: str = ""
    channel: str = ""
    offset: int = 0
    at_ms: int = 0


@dataclass(frozen=True)
class CopiedTable:
    """A table that is copied: which of its columns, and its schema where somebody knows it. ``held``: that of its copy;
    None where there is none yet."""

    rule: TableRule
    schema: TableSchema | None = None
    held: TableSchema | None = None


@dataclass(frozen=True)
class DecoderSettings:
    """What a decoder is told. ``tables``: only these are decoded, all others counted; None decodes whatever comes.
    ``options``: the keys of the source type in the YAML. ``guess``: a table whose schema nobody knows is shown as its
    messages look, for people to look at; no copy is made of that."""

    epoch: int = 1
    tables: Mapping[str, CopiedTable] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    guess: bool = False

    def wants(self, table: str) -> bool:
        return self.tables is None or table in self.tables

    def rule(self, table: str) -> TableRule | None:
        wanted = self._wanted(table)
        return wanted.rule if wanted else None

    def known(self, table: str) -> TableSchema | None:
        wanted = self._wanted(table)
        return wanted.schema if wanted else None

    def held(self, table: str) -> TableSchema | None:
        wanted = self._wanted(table)
        return wanted.held if wanted else None

    def _wanted(self, table: str) -> CopiedTable | None:
        return self.tables.get(table) if self.tables else None


class Decoder(Protocol):
    """Made from a Setting. What it remembers from message to message saves time and changes no answer, but that a
    schema is told once. ``codec`` names the format in quarantine. ``whole_rows``: how its feed of a ``{table}`` is made
    to tell whole rows; empty where it always does. ``reads_avro``: an Avro file is one message; to the others each of
    its rows is one, as JSON."""

    codec: str
    whole_rows: str
    reads_avro: bool

    def decode(self, message: Message) -> list[Item]:
        """Everything the message says. Raises nothing: what cannot be understood is an ``unreadable`` record, of the
        table where that much is clear, else of the table with the empty name. Whoever reads must not step over it."""


class SnapshotWatch(Protocol):
    def show(self, message: Message) -> None: ...

    @property
    def found(self) -> tuple[SourceSnapshot, ...]:
        """The full snapshots that the messages shown so far belong to."""


@runtime_checkable
class MarksSnapshots(Decoder, Protocol):
    """A decoder of messages that say which of them are rows of a full snapshot."""

    def snapshot_watch(self) -> SnapshotWatch: ...


@runtime_checkable
class DecodesMany(Decoder, Protocol):
    def decode_many(self, messages: Sequence[Message]) -> Iterator[Item | Block]:
        """What ``decode`` says of each of them, in any order: order keys tell it."""

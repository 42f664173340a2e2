"""A replicator of topics or event files, compared with a simulated source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.state_rows import TableRow
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.simulator import COLUMNS, History, Simulator
from tests.spark.pipelines.pipeline import Pipeline

MYSQL = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
POSTGRES = ConnectorSetup("postgresql", schemas=True, transactions=True, headers=True)


@dataclass
class SimulatedTable:
    """A table of the source, all of its changes, and the number of messages sent."""

    name: str
    history: History
    messages: list[Message]
    sent: int = 0

    def next(self, count: int) -> list[Message]:
        self.sent += count
        return self.messages[self.sent - count : self.sent]

    def rest(self) -> list[Message]:
        return self.next(len(self.messages) - self.sent)

    @property
    def end(self) -> dict[int, tuple[Any, ...]]:
        return dict(self.history.end)


def table(letter: str, seed: str, transactions: int = 30, manner: ConnectorSetup = MYSQL) -> SimulatedTable:
    """``d.<letter>`` or ``s.<letter>``."""
    history = Simulator(Random(seed), moves=manner is MYSQL, late_check=False).history(transactions)
    messages = DebeziumEncoder(manner, Random(seed)).messages(history)
    return SimulatedTable(f"{manner.table.table[:2]}{letter}", history, [_of(letter, one) for one in messages])


def _of(letter: str, message: Message) -> Message:
    """The encoder writes one table, ``t``."""
    topic = f"p.d.{letter}"
    value = message.value and message.value.replace(b'"table": "t"', f'"table": "{letter}"'.encode())
    return message._replace(value=value, topic=topic, channel=message.channel.replace("p.t", topic))


def line(message: Message) -> str:
    topic, _, partition = message.channel.rpartition("/")
    return json.dumps(
        {
            "topic": topic,
            "partition": int(partition),
            "offset": message.offset,
            "headers": {name: text and text.decode() for name, text in message.headers},
            "key": None if message.key is None else json.loads(message.key),
            "value": None if message.value is None else json.loads(message.value),
        }
    )


@dataclass
class FeedPipeline(Pipeline):
    source: ConnectionInfo = field(default_factory=ConnectionInfo)
    registry: ConnectionInfo = field(default_factory=ConnectionInfo)

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.source, registry=self.registry)

    def rows_of(self) -> dict[str, TableRow]:
        return self.replicator().state.tables(self.definition.name)

    def rows(self, table: str) -> dict[int, tuple[Any, ...]]:
        """Id → row, with values of the simulator."""
        return {key: tuple(map(_plain, row.values())) for key, row in self.copied_rows(table, "id", *COLUMNS).items()}

    def differences(self, *tables: SimulatedTable) -> Iterator[str]:
        for one in tables:
            copied, true = self.rows(one.name), one.end
            for key in sorted(copied.keys() | true.keys()):
                if copied.get(key) != true.get(key):
                    yield f"{one.name} {key}: {copied.get(key)}, in truth {true.get(key)}"


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def definition(folder: Path, source: Source, tables: Iterable[str], **rules: Any) -> Definition:
    return Definition(
        name="feed",
        source=source,
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(TableRule(table, **rules) for table in tables),
        staging=Staging(f"{folder}/staging"),
    )


def with_tables(pipeline: FeedPipeline, *tables: SimulatedTable) -> FeedPipeline:
    rules = tuple(TableRule(one.name) for one in tables)
    return replace(pipeline, definition=replace(pipeline.definition, tables=rules))

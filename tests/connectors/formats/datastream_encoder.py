"""Encodes a simulated history as Datastream's files do, from an independent reading of their format: in any order, and
some events twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from random import Random
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Regime, TableSchema
from tests.connectors.formats import avro_writer as avro
from tests.connectors.formats.avro_writer import logical, nullable
from tests.connectors.formats.simulator import Change, History, Row

TABLES = {"mysql": "d.t", "oracle": "s.t", "postgresql": "s.t", "sqlserver": "d.s.t"}
METHODS = {
    "mysql": ("mysql-cdc-binlog", "mysql-backfill-fulldump"),
    "oracle": ("oracle-cdc-logminer", "oracle-backfill"),
    "postgresql": ("postgresql-cdc", "postgresql-backfill"),
    "sqlserver": ("sqlserver-cdc", "sqlserver-backfill"),
}
PAYLOAD = [
    nullable("id", "long"),
    nullable("name", logical("string", "varchar", length=10)),
    nullable("amount", logical("bytes", "decimal", precision=10, scale=2)),
    nullable("at", logical("long", "timestamp-micros")),
    nullable("wide", "string"),
]
METADATA = [
    *avro.strings("table", "database", "schema", "change_type", "log_file", "lsn", "rs_id", "row_id", "tx_id"),
    nullable("log_position", "long"),
    nullable("scn", "long"),
    nullable("ssn", "long"),
    nullable("primary_keys", {"type": "array", "items": "string"}),
    nullable("is_deleted", "boolean"),
]
MOST_IN_A_FILE = 7


@dataclass(frozen=True)
class Stream:
    source: str
    avro: bool

    @property
    def table(self) -> TableSchema:
        columns = (
            Column("id", LogicalType(Kind.INT64)),
            Column("name", LogicalType(Kind.TEXT)),
            Column("amount", LogicalType(Kind.DECIMAL, 10, 2)),
            Column("at", LogicalType(Kind.TIMESTAMP)),
            Column("wide", LogicalType(Kind.TEXT)),
        )
        return TableSchema(TABLES[self.source], columns, ("id",), Regime.UNORDERED)


class DatastreamEncoder:
    def __init__(self, stream: Stream, random: Random) -> None:
        self._stream = stream
        self._random = random
        self._sent_events = 0

    def messages(self, history: History) -> Iterator[Message]:
        """Backfilled rows are sent late, after most of them have changed."""
        events = [self._event(row, None, "INSERT", False) for row in history.start]
        for change in history.changes:
            events += self._events(change)
        events += self._random.sample(events, len(events) // 4)
        self._random.shuffle(events)
        if not self._stream.avro:
            for number, event in enumerate(events):
                yield Message(
                    json.dumps(event, default=_as_text).encode(), topic="f.jsonl", channel="f.jsonl", offset=number
                )
            return
        for begin in range(0, len(events), MOST_IN_A_FILE):
            name = f"{begin}.avro"
            file = avro.file(avro.schema(METADATA, PAYLOAD), events[begin : begin + MOST_IN_A_FILE])
            yield Message(file, topic=name, channel=name)

    def _events(self, change: Change) -> list[dict[str, Any]]:
        """An update of other columns is one event; one of the key is two, at one position."""
        old, new = change.old, change.new
        if old is not None and new is not None and not change.moved:
            return [self._event(new, change, "UPDATE-INSERT" if self._stream.source == "mysql" else "UPDATE", False)]
        encoded = []
        if old is not None:
            encoded.append(self._event(old, change, "UPDATE-DELETE" if new else "DELETE", True))
        if new is not None:
            encoded.append(self._event(new, change, "UPDATE-INSERT" if old else "INSERT", False))
        return encoded

    def _event(self, row: Row, change: Change | None, change_type: str, deleted: bool) -> dict[str, Any]:
        self._sent_events += 1
        began = 1_700_000_000_000
        clock = began + self._random.randrange(10**6)  # the clock of the source does not order changes
        key, name, amount, at, wide = row
        method = METHODS[self._stream.source][0 if change else 1]
        return {
            "stream_name": "s",
            "read_method": method,
            "object": "t",
            "schema_key": "k",
            "uuid": f"d7989206-380f-0e81-8056-{self._sent_events >> 8:04x}{self._sent_events & 255:08b}",
            "read_timestamp": clock,
            "source_timestamp": clock if change else began,
            "sort_keys": [clock],
            "source_metadata": self._metadata(change, change_type, deleted),
            "payload": {
                "id": key,
                "name": name,
                "amount": amount,
                "at": None if at is None else at.replace(tzinfo=UTC),
                "wide": wide,
            },
        }

    def _metadata(self, change: Change | None, change_type: str, deleted: bool) -> dict[str, Any]:
        encoded: dict[str, Any] = {
            "table": "t",
            "primary_keys": ["id"],
            "change_type": change_type,
            "is_deleted": deleted,
        }
        place = change.position if change else 0
        match self._stream.source:
            case "mysql":
                binlog = change.commit * 1000 + change.seq - change.ordinal if change else 0
                encoded |= {
                    "database": "d",
                    "log_file": f"mysql-bin.{999_990 + binlog // 100_000:06d}" if change else "",
                }
                encoded |= {"log_position": binlog % 100_000}
            case "oracle":
                encoded |= {
                    "database": "d",
                    "schema": "s",
                    "scn": place,
                    "ssn": 0,
                    "rs_id": f" 0x{place:06x}.00000000.0000 ",
                }
                encoded |= {"tx_id": str(change.tx if change else 0)}
            case "postgresql":
                encoded |= {"schema": "s", "lsn": f"0/{place:X}" if change else None}
            case "sqlserver":
                encoded |= {"database": "d", "schema": "s"}
                encoded |= {"lsn": f"{0:08x}:{place >> 4:08x}:{place & 15:04x}" if change else None}
        return encoded


def _as_text(value: Any) -> str:
    """Decimals and times of JSON files."""
    text = str(value)
    return text.replace(" ", "T").replace("+00:00", "Z") if ":" in text else text

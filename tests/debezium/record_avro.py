"""``python -m tests.debezium.record_avro``: the messages of a real Debezium with Apicurio's AvroConverter about the
changes here, with the registered schemas, and the messages of a second connector with JsonConverter about them."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.framing import framed
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium, avro_converters
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.debezium import mariadb_changes, postgres_changes
from tests.debezium.record import RECORDED
from tests.debezium.topics import parsed, topic_messages

PREFIXES = {"postgres": "pg", "mariadb": "my"}


@dataclass(frozen=True)
class AvroRecording:
    """``avro`` and ``as_json``: messages about the same changes, with registered schemas and with their own; the prefix
    of the first has the name of its converter at its end."""

    schemas: Mapping[str, RegisteredSchema]
    avro: list[Message]
    as_json: list[Message]


def read_recording(name: str) -> AvroRecording:
    """``name``: of the source and the converter."""
    content = json.loads(gzip.decompress(_file(name).read_bytes()))
    schemas = {number: from_plain(RegisteredSchema, schema) for number, schema in content["schemas"].items()}
    return AvroRecording(
        schemas,
        [_message(one, b64decode) for one in content["avro"]],
        [_message(one, _text) for one in content["json"]],
    )


def main() -> None:
    with (
        EmbeddedRegistry() as registry,
        EmbeddedKafka() as broker,
        EmbeddedPostgres() as postgres,
        EmbeddedMariaDB() as mariadb,
    ):
        postgres_changes.prepare(postgres)
        mariadb_changes.prepare(mariadb)
        avro = avro_converters(registry)
        connectors = {
            "pg": postgres_changes.connector(postgres),
            "pg_avro": postgres_changes.connector(postgres, "pg_avro") | avro,
            "my": mariadb_changes.connector(mariadb),
            "my_avro": mariadb_changes.connector(mariadb, "my_avro", 4712) | avro,
        }
        with EmbeddedDebezium(broker, connectors) as debezium:
            first = {name: len(topic_messages(debezium, name, read=in_base64)) for name in connectors}
            postgres_changes.apply_changes(postgres)
            mariadb_changes.apply_changes(mariadb)
            for source, prefix in PREFIXES.items():
                sent = topic_messages(debezium, f"{prefix}_avro", first[f"{prefix}_avro"], in_base64)
                plain = topic_messages(debezium, prefix, first[prefix], parsed)
                keep(f"{source}_avro", registry.connection, sent, plain)


def keep(name: str, registry: ConnectionInfo, sent: list[dict[str, Any]], plain: list[dict[str, Any]]) -> None:
    """``sent``: messages with registered schemas, in base64. ``plain``: those of JsonConverter."""
    client, ids = RegistryClient(registry), set[str]()
    for one in sent:
        for side in ("key", "value"):
            found = framed(b64decode(one[side] or ""), (), "")
            ids |= {found.schema_id} if found else set()
    schemas = {number: to_plain(client.fetch(number, "a recording")) for number in sorted(ids)}
    content = {"schemas": schemas, "avro": sent, "json": plain}
    _file(name).write_bytes(gzip.compress(dumps(content).encode(), 9, mtime=0))
    print(f"{name}: {len(sent)} messages, {len(schemas)} schemas")


def _file(name: str) -> Path:
    return RECORDED / f"{name}.json.gz"


def _message(one: Mapping[str, Any], read: Any) -> Message:
    headers = tuple((name, text and text.encode()) for name, text in one["headers"].items())
    value, key = (None if one[side] is None else read(one[side]) for side in ("value", "key"))
    return Message(value, key, headers, one["topic"], f"{one['topic']}/{one['partition']}", one["offset"])


def in_base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _text(value: Any) -> bytes:
    return dumps(value).encode()


if __name__ == "__main__":
    main()

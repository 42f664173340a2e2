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
    """``avro`` and ``as_json``: messages about the same changes; the prefix of the first has ``_avro`` at its end."""

    schemas: Mapping[str, RegisteredSchema]
    avro: list[Message]
    as_json: list[Message]


def read_recording(source: str) -> AvroRecording:
    content = json.loads(gzip.decompress(_file(source).read_bytes()))
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
            first = {name: len(topic_messages(debezium, name, read=_base64)) for name in connectors}
            postgres_changes.apply_changes(postgres)
            mariadb_changes.apply_changes(mariadb)
            for source, prefix in PREFIXES.items():
                sent = topic_messages(debezium, f"{prefix}_avro", first[f"{prefix}_avro"], _base64)
                plain = topic_messages(debezium, prefix, first[prefix], parsed)
                _keep(source, {"schemas": _schemas(registry, sent), "avro": sent, "json": plain})


def _schemas(registry: EmbeddedRegistry, messages: list[dict[str, Any]]) -> dict[str, Any]:
    client = RegistryClient(registry.connection)
    contents = [b64decode(one[side]) for one in messages for side in ("key", "value") if one[side]]
    numbers = sorted({int.from_bytes(content[1:5], "big") for content in contents})
    return {str(number): to_plain(client.fetch(str(number), "a recording")) for number in numbers}


def _keep(source: str, content: dict[str, Any]) -> None:
    _file(source).write_bytes(gzip.compress(dumps(content).encode(), 9, mtime=0))
    print(f"{source}: {len(content['avro'])} messages, {len(content['schemas'])} schemas")


def _file(source: str) -> Path:
    return RECORDED / f"{source}_avro.json.gz"


def _message(one: Mapping[str, Any], read: Any) -> Message:
    headers = tuple((name, text and text.encode()) for name, text in one["headers"].items())
    value, key = (None if one[side] is None else read(one[side]) for side in ("value", "key"))
    return Message(value, key, headers, one["topic"], f"{one['topic']}/{one['partition']}", one["offset"])


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _text(value: Any) -> bytes:
    return dumps(value).encode()


if __name__ == "__main__":
    main()

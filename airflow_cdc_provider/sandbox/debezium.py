"""A real Debezium on loopback: a standalone worker of Kafka Connect that writes to the embedded broker.

It ends with the process that started it. Its jars and the broker's are listed in ``jars.lock.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.error import HTTPError
from urllib.request import urlopen

from airflow_cdc_provider.sandbox.jars import server_jars
from airflow_cdc_provider.sandbox.kafka import JARS as BROKER_JARS
from airflow_cdc_provider.sandbox.kafka import LOGIN, EmbeddedKafka, java, properties
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

STATUS_LIMIT_S = 60
JARS, AVRO_JARS = "debezium", "apicurio-converter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
EXT_JSON = "io.apicurio.registry.utils.converter.ExtJsonConverter"
SETTINGS = {
    "key.converter": JSON,
    "value.converter": JSON,
    "offset.flush.interval.ms": "500",
    "plugin.discovery": "service_load",
}
TOPICS = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1"}


def avro_converters(registry: EmbeddedRegistry) -> dict[str, str]:
    """Settings of a connector that writes Avro as Confluent's converter does, with ids of four bytes."""
    settings = {"as-confluent": "true", "use-id": "contentId", "headers.enabled": "false"}
    return _converters(AVRO, registry, settings)


def ext_json_converters(registry: EmbeddedRegistry) -> dict[str, str]:
    """Settings of a connector that writes objects with the id of a schema and the JSON of Connect."""
    return _converters(EXT_JSON, registry, {"find-latest": "true"})


def _converters(converter: str, registry: EmbeddedRegistry, settings: Mapping[str, str]) -> dict[str, str]:
    address = {"url": f"http://{HOST}:{registry.port}/apis/registry/v2", "auto-register": "true"}
    of_registry = {f"converter.apicurio.registry.{name}": value for name, value in {**address, **settings}.items()}
    all_settings = {"converter": converter, **of_registry}
    return {f"{side}.{name}": value for side in ("key", "value") for name, value in all_settings.items()}


class EmbeddedDebezium(EmbeddedServer):
    """One worker. ``connectors``: name → settings.

    Each connector keeps its offset over ``stop`` and ``start``.
    """

    name = "Debezium"

    def __init__(self, broker: EmbeddedKafka, connectors: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__()
        self.broker = broker
        self.connectors = connectors
        (self.port,) = free_ports(1)

    def _command(self) -> list[str]:
        files = [self._private("worker.properties", properties(self._worker()))]
        for name, settings in self.connectors.items():
            connector = {"name": name, "config": {**TOPICS, **settings}}
            files.append(self._private(f"{name}.json", json.dumps(connector)))
        return java(
            server_jars(JARS, BROKER_JARS, AVRO_JARS),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            *map(str, files),
        )

    def _is_ready(self) -> bool:
        """The port opens when the worker is up; its connectors start later."""
        return is_open(self.port)

    def failures(self) -> list[str]:
        """The stack traces of connectors and tasks that have failed; the worker itself goes on."""
        url = f"http://{HOST}:{self.port}/connectors?expand=status"
        try:
            with urlopen(url, timeout=STATUS_LIMIT_S) as response:
                connectors = [one["status"] for one in json.load(response).values()]
        except HTTPError:  # the worker has no connectors yet
            return []
        parts = [part for one in connectors for part in (one["connector"], *one["tasks"])]
        return [str(part.get("trace", "no trace")) for part in parts if part["state"] == "FAILED"]

    def _worker(self) -> dict[str, str]:
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN} username="{self.broker.user}" password="{self.broker.password}";',
        }
        return {
            **SETTINGS,
            "bootstrap.servers": self.broker.servers,
            "listeners": f"http://{HOST}:{self.port}",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            **client,
            **{f"producer.{name}": value for name, value in client.items()},
        }

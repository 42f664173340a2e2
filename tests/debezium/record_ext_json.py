"""``python -m tests.debezium.record_ext_json``: as ``record_avro``, with Apicurio's ExtJsonConverter."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.schema_registry.client_settings import USE_ID
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.debezium import EmbeddedDebezium, ext_json_converters
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.debezium import postgres_changes
from tests.debezium.record_avro import in_base64, keep
from tests.debezium.topics import parsed, topic_messages

PLAIN, REGISTERED = "pg", "pg_ext_json"


def main() -> None:
    with EmbeddedRegistry() as registry, EmbeddedKafka() as broker, EmbeddedPostgres() as postgres:
        postgres_changes.prepare(postgres)
        connectors = {
            PLAIN: postgres_changes.connector(postgres),
            REGISTERED: postgres_changes.connector(postgres, REGISTERED) | ext_json_converters(registry),
        }
        with EmbeddedDebezium(broker, connectors) as debezium:
            first = {name: len(topic_messages(debezium, name, read=in_base64)) for name in connectors}
            postgres_changes.apply_changes(postgres)
            sent = topic_messages(debezium, REGISTERED, first[REGISTERED], in_base64)
            plain = topic_messages(debezium, PLAIN, first[PLAIN], parsed)
            keep("postgres_ext_json", declared(registry), sent, plain)


def declared(registry: EmbeddedRegistry) -> ConnectionInfo:
    """The converter is of version 2."""
    return replace(registry.connection, extra={USE_ID: "globalId"})


if __name__ == "__main__":
    main()

"""Messages of Apicurio's ExtJsonConverter, with a real registry: their ids are global ids or content ids."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import DecoderSettings, Message
from airflow_cdc_provider.connectors.schema_registry.check import registry_problems
from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.client_settings import USE_ID
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, NotInstalled, SourceUnavailable
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from airflow_cdc_provider.sandbox.server import HOST
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats.golden import decoder, records
from tests.connectors.registry.schema_files import SchemasInMemory, converter

pytestmark = [pytest.mark.jvm, pytest.mark.server]
USED_BY = "the value of srv.inv.s/0, offset 7"


@pytest.fixture(scope="module")
def registry() -> Iterator[EmbeddedRegistry]:
    """One of its own, with ids from 1 on."""
    try:
        server = EmbeddedRegistry()
    except NotInstalled as missing:
        pytest.skip(f"the registry needs Java 21 or later: {missing}")
    with server:
        assert register(server, "first", ENVELOPE) == (1, 1)
        assert register(server, "first", KEY) is None, "the name is taken; the content has an id now"
        assert register(server, "again", ENVELOPE) == (2, 1)
        assert register(server, "key", KEY) == (3, 2)
        yield server


def envelope_schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = debezium.with_schema({}, debezium.field("id", "int32"), debezium.field("v", kind))[
        "schema"
    ]
    return schema


ENVELOPE = envelope_schema("string")
KEY = {"type": "struct", "name": "srv.inv.s.Key", "fields": [debezium.field("id", "int32")]}


def register(registry: EmbeddedRegistry, name: str, schema: dict[str, Any]) -> tuple[int, int] | None:
    """As the converter does. The global id and the content id; None if another artifact has the name."""
    with closing(http.client.HTTPConnection(HOST, registry.port)) as client:
        headers = {"X-Registry-ArtifactType": "KCONNECT", "X-Registry-ArtifactId": name}
        path, content = "/apis/registry/v2/groups/default/artifacts", json.dumps(schema)
        client.request("POST", path, content, {"Content-Type": "application/json", **headers})
        answer = client.getresponse()
        body = json.loads(answer.read())
    return (body["globalId"], body["contentId"]) if answer.status == HTTPStatus.OK else None


def declared(registry: EmbeddedRegistry, use_id: str) -> ConnectionInfo:
    return replace(registry.connection, extra={USE_ID: use_id})


def fetched(connection: ConnectionInfo, number: int) -> Any:
    schema = RegistryClient(connection).fetch(f"schemaId-{number}", USED_BY)
    assert schema.kind == "KCONNECT"
    return json.loads(schema.text)


def refused(connection: ConnectionInfo, number: int, kind: type[CdcError]) -> str:
    with pytest.raises(kind) as raised:
        RegistryClient(connection).fetch(f"schemaId-{number}", USED_BY)
    return str(raised.value.problems[0])


def test_an_id_that_names_one_schema_needs_no_declaration(registry: EmbeddedRegistry) -> None:
    assert fetched(registry.connection, 1) == ENVELOPE


def test_an_id_that_names_two_schemas_or_one_only_is_refused_until_it_is_declared(registry: EmbeddedRegistry) -> None:
    """2 is the global id of the second registration, and the content id of the third; 3 is a global id only."""
    for number in (2, 3):
        found = refused(registry.connection, number, CheckFailed)
        assert found.startswith("SRC162") and USE_ID in found and USED_BY in found
    assert fetched(declared(registry, "globalId"), 2) == ENVELOPE
    assert fetched(declared(registry, "contentId"), 2) == KEY
    assert fetched(declared(registry, "globalId"), 3) == KEY
    assert refused(declared(registry, "contentId"), 3, SourceUnavailable).startswith("SRC108")


def test_an_unknown_id_is_a_reason_to_try_again_later(registry: EmbeddedRegistry) -> None:
    assert refused(registry.connection, 99, SourceUnavailable).startswith("SRC108")


def test_a_registry_that_is_not_apicurio_is_refused() -> None:
    found = refused(ConnectionInfo("r", "https://registry.example.com"), 1, CheckFailed)
    assert found.startswith("SRC163") and "/apis/ccompat/v7" in found


def test_another_declaration_is_refused(registry: EmbeddedRegistry) -> None:
    assert refused(declared(registry, "id"), 1, CheckFailed).startswith("CON040")


def message(value_id: int, key_id: int) -> Message:
    row = debezium.envelope("c", None, {"id": 1, "v": "x"}, debezium.pg())
    return debezium.message({"schemaId": value_id, "payload": row}, {"schemaId": key_id, "payload": {"id": 1}})


def test_messages_are_decoded_with_their_schemas(registry: EmbeddedRegistry) -> None:
    (converted,) = converter(declared(registry, "contentId")).messages([message(1, 2)])
    (record,) = records(decoder("debezium", DecoderSettings()).decode(converted))
    assert (record.op, record.key, record.after) == ("insert", "[1]", '{"id":1,"v":"x"}')


def test_the_check_names_what_to_declare(registry: EmbeddedRegistry) -> None:
    schemas = RegisteredSchemas(RegistryClient(registry.connection), SchemasInMemory())
    (problem,) = registry_problems([message(1, 2)], schemas)
    assert problem.code == "SRC162"
    (missing,) = registry_problems([message(1, 2)], None)
    assert missing.code == "SRC107"


def test_without_a_registry_the_reason_names_the_converter_and_the_key_to_set() -> None:
    for unwrapped in (False, True):
        setting = DecoderSettings(options={"unwrapped": unwrapped, "topic_prefix": "srv"})
        (record,) = records(decoder("debezium", setting).decode(message(1, 2)))
        what = undecoded(record)
        assert what is not None and what.reason.startswith("EVT014")
        assert "ExtJsonConverter" in what.reason and "`registry`" in what.reason

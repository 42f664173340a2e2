"""Schemas fetched from a real registry: references, logins, TLS, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

from airflow_cdc_provider.connectors.schema_registry.client import RegistryClient
from airflow_cdc_provider.connectors.schema_registry.client_settings import client_settings, tls_warnings
from airflow_cdc_provider.connectors.schema_registry.protobuf import ProtobufReader
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, SourceUnavailable
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.certificates import certificate_files
from tests.connectors.registry.schema_files import SchemasInMemory
from tests.registry_front import CLIENT_SECRET, PASSWORD, TOKEN, USER, RegistryFront, basic, registry_front

pytestmark = [pytest.mark.jvm, pytest.mark.server]
USED_BY = "the value of srv.inv.s/0, offset 7 (subject srv.inv.s-value, with the default name strategy)"
AVRO = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}]}


@pytest.fixture(scope="module")
def schema_id(registry: EmbeddedRegistry) -> str:
    with SchemaRegistryClient({"url": registry.url}) as client:
        return str(client.register_schema("client-value", Schema(json.dumps(AVRO), "AVRO")))


@pytest.fixture
def front(registry: EmbeddedRegistry) -> Iterator[RegistryFront]:
    with registry_front(registry.url) as front:
        yield front


def fetched(connection: ConnectionInfo, schema_id: str) -> object:
    return json.loads(RegistryClient(connection).fetch(schema_id, USED_BY).text)


def problem(connection: ConnectionInfo, schema_id: str, kind: type[CdcError]) -> str:
    with pytest.raises(kind) as raised:
        RegistryClient(connection).fetch(schema_id, USED_BY)
    (found,) = raised.value.problems
    assert not {PASSWORD, TOKEN, CLIENT_SECRET} & set(str(found).split())
    return str(found)


@pytest.fixture
def client(registry: EmbeddedRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def test_avro_and_json_schema_come_with_everything_that_they_refer_to(
    registry: EmbeddedRegistry, client: SchemaRegistryClient
) -> None:
    money = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
    price = {"type": "record", "name": "shop.Price", "fields": [{"name": "net", "type": "shop.Money"}]}
    row = {"type": "record", "name": "shop.Row", "fields": [{"name": "price", "type": "shop.Price"}]}
    client.register_schema("money", Schema(json.dumps(money), "AVRO"))
    client.register_schema("price", Schema(json.dumps(price), "AVRO", [SchemaReference("shop.Money", "money", 1)]))
    both = [SchemaReference("shop.Price", "price", 1), SchemaReference("shop.Money", "money", 1)]
    number = client.register_schema("row", Schema(json.dumps(row), "AVRO", both))
    schema = RegistryClient(registry.connection).fetch(str(number), USED_BY)
    assert [reference.name for reference in schema.references] == ["shop.Money", "shop.Price"]

    inner = {"type": "object", "title": "Inner", "properties": {"a": {"type": "string"}}}
    outer = {"type": "object", "title": "Outer", "properties": {"inner": {"$ref": "inner.json"}}}
    client.register_schema("inner", Schema(json.dumps(inner), "JSON"))
    number = client.register_schema(
        "outer", Schema(json.dumps(outer), "JSON", [SchemaReference("inner.json", "inner", 1)])
    )
    schema = RegistryClient(registry.connection).fetch(str(number), USED_BY)
    assert (schema.kind, [one.name for one in schema.references]) == ("JSON", ["inner.json"])


def test_a_protobuf_schema_comes_with_what_it_imports_and_its_messages_are_read(
    registry: EmbeddedRegistry, client: SchemaRegistryClient
) -> None:
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    price = 'syntax = "proto3"; package shop; import "money.proto"; message Price { Money net = 1; }'
    row = 'syntax = "proto3"; package shop; import "price.proto"; message Row { Price price = 1; }'
    client.register_schema("money-proto", Schema(money, "PROTOBUF"))
    client.register_schema("price-proto", Schema(price, "PROTOBUF", [SchemaReference("money.proto", "money-proto", 1)]))
    imports = [SchemaReference("price.proto", "price-proto", 1)]
    number = client.register_schema("row-proto", Schema(row, "PROTOBUF", imports))
    schema = RegistryClient(registry.connection).fetch(str(number), USED_BY)
    assert (schema.kind, [one.name for one in schema.references]) == ("PROTOBUF", ["money.proto", "price.proto"])

    message = b"\x0a\x04" + b"\x0a\x02" + b"\x08\x2a"  # price, its net, its cents: 42
    content = ProtobufReader(schema, is_key=False).read(b"\0" + message)
    assert json.loads(content) == {"price": {"net": {"cents": 42}}}


def test_a_login_is_sent(front: RegistryFront, schema_id: str) -> None:
    front.authorization = basic()
    assert fetched(ConnectionInfo("r", front.url, login=USER, password=PASSWORD), schema_id) == AVRO
    found = problem(ConnectionInfo("r", front.url, login=USER, password="wrong"), schema_id, CheckFailed)
    assert found.startswith("SRC109") and "subject srv.inv.s-value" in found and "offset 7" in found


def test_a_token_is_sent(front: RegistryFront, schema_id: str) -> None:
    front.authorization = f"Bearer {TOKEN}"
    assert fetched(ConnectionInfo("r", front.url, extra={"bearer.auth.token": TOKEN}), schema_id) == AVRO
    found = problem(ConnectionInfo("r", front.url, extra={"bearer.auth.token": "other"}), schema_id, CheckFailed)
    assert found.startswith("SRC109")


def test_a_token_is_requested(front: RegistryFront, schema_id: str) -> None:
    front.authorization = f"Bearer {TOKEN}"
    extra = {
        "bearer.auth.issuer.endpoint.url": f"{front.url}/token",
        "bearer.auth.client.id": "cdc",
        "bearer.auth.client.secret": CLIENT_SECRET,
        "bearer.auth.scope": "schemas",
    }
    assert fetched(ConnectionInfo("r", front.url, extra=extra), schema_id) == AVRO
    unreachable = extra | {"bearer.auth.issuer.endpoint.url": "http://127.0.0.1:1/token"}
    assert problem(ConnectionInfo("r", front.url, extra=unreachable), schema_id, SourceUnavailable)[:6] == "SRC110"


def test_a_certificate_is_verified_unless_the_connection_says_otherwise(
    registry: EmbeddedRegistry, schema_id: str
) -> None:
    with certificate_files({}) as files, registry_front(registry.url, files) as front:
        trusting = ConnectionInfo("r", front.url, extra={"ssl.ca.location": str(files[0])})
        assert fetched(trusting, schema_id) == AVRO
        assert problem(ConnectionInfo("r", front.url), schema_id, CheckFailed).startswith("CON042")
        careless = ConnectionInfo("r", front.url, extra={"tls_verify": False})
        assert fetched(careless, schema_id) == AVRO
        assert [warning.code for warning in tls_warnings(careless)] == ["CON041"]
        assert tls_warnings(trusting) == []


def test_a_client_certificate_is_sent(registry: EmbeddedRegistry, schema_id: str) -> None:
    with (
        certificate_files({}) as server,
        certificate_files({}) as client,
        registry_front(registry.url, server, client[0]) as front,
    ):
        extra = {"ssl.ca.location": str(server[0])}
        names = dict(zip(("ssl.certificate.location", "ssl.key.location"), map(str, client), strict=True))
        assert fetched(ConnectionInfo("r", front.url, extra=extra | names), schema_id) == AVRO
        assert problem(ConnectionInfo("r", front.url, extra=extra), schema_id, SourceUnavailable).startswith("SRC110")


def test_an_unknown_id_names_the_message_and_its_subject(registry: EmbeddedRegistry) -> None:
    found = problem(registry.connection, "999999", SourceUnavailable)
    assert found.startswith("SRC108 the schema registry has no schema with the id 999999")
    assert USED_BY in found and "nothing was sealed or skipped" in found


def test_a_registry_that_is_starting_is_asked_again(front: RegistryFront, schema_id: str) -> None:
    front.failing = 2
    assert fetched(ConnectionInfo("r", front.url), schema_id) == AVRO
    assert len(front.paths) == 3


def test_a_registry_that_does_not_answer_is_a_reason_to_try_again_later() -> None:
    assert problem(ConnectionInfo("r", "http://127.0.0.1:1"), "1", SourceUnavailable).startswith("SRC110")


def test_a_schema_is_requested_once(front: RegistryFront, schema_id: str) -> None:
    files = SchemasInMemory()
    for _ in range(3):
        RegisteredSchemas(RegistryClient(ConnectionInfo("r", front.url)), files).get(schema_id, USED_BY)
    assert len(front.paths) == 1


def test_another_schema_under_a_known_id_is_a_problem(registry: EmbeddedRegistry, schema_id: str) -> None:
    files = SchemasInMemory()
    schemas = RegisteredSchemas(RegistryClient(registry.connection), files)
    assert schemas.problem(schema_id, USED_BY) is None
    known = schemas.get(schema_id, USED_BY)
    assert schemas.problem(schema_id, USED_BY) is None
    files.write_registered_schema(schema_id, type(known)("AVRO", '"string"'))
    changed = schemas.problem(schema_id, USED_BY)
    assert changed is not None and changed.code == "SRC111"


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        (ConnectionInfo("r"), "CON050"),
        (ConnectionInfo("r", "https://user:pass@r"), "CON050"),
        (ConnectionInfo("r", "ftp://r"), "CON050"),
        (ConnectionInfo("r", "https://r", extra={"bearer.auth.custom.provider.function": "f"}), "CON040"),
        (ConnectionInfo("r", "https://r", extra={"ssl.ca.location": "relative.pem"}), "CON040"),
        (ConnectionInfo("r", "https://r", extra={"ssl.key.location": "/k.pem"}), "CON040"),
        (ConnectionInfo("r", "https://r", extra={"tls_verify": False, "ssl.ca.location": "/c.pem"}), "CON040"),
        (ConnectionInfo("r", "https://r", extra={"bearer.auth.client.id": "c"}), "CON040"),
        (ConnectionInfo("r", "https://r", login="u", extra={"bearer.auth.token": "t"}), "CON040"),
        (
            ConnectionInfo(
                "r",
                "https://r",
                extra={
                    "bearer.auth.issuer.endpoint.url": "http://elsewhere/token",
                    "bearer.auth.client.id": "c",
                    "bearer.auth.client.secret": "s",
                    "bearer.auth.scope": "x",
                },
            ),
            "CON040",
        ),
    ],
)
def test_settings_that_are_not_allowed_are_refused(connection: ConnectionInfo, code: str) -> None:
    with pytest.raises(CheckFailed) as raised:
        client_settings(connection)
    assert raised.value.problems[0].code == code


def test_an_address_is_a_host_with_a_port_or_a_url() -> None:
    assert client_settings(ConnectionInfo("r", "registry", 8081))["url"] == "https://registry:8081"
    assert client_settings(ConnectionInfo("r", "registry", schema="http"))["url"] == "http://registry"
    url = "https://r.example.com/apis/ccompat/v7"
    assert client_settings(ConnectionInfo("r", f"{url}/"))["url"] == url
    assert client_settings(ConnectionInfo("r", url, 8443))["url"] == "https://r.example.com:8443/apis/ccompat/v7"


def test_a_login_over_plain_http_is_a_warning() -> None:
    over_http = ConnectionInfo("r", "http://registry", login="u", password="p")
    assert [warning.code for warning in tls_warnings(over_http)] == ["CON041"]
    assert tls_warnings(ConnectionInfo("r", "http://registry")) == []


def test_the_files_of_the_client_exist_on_every_host(tmp_path: Path) -> None:
    missing = ConnectionInfo("r", "https://r", extra={"ssl.ca.location": str(tmp_path / "none.pem")})
    assert problem(missing, "1", CheckFailed).startswith("CON040")

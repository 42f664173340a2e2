"""The messages of a real Debezium, encoded anew by Confluent's serializers with a real registry, give the records that
they give as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import CopiedTable, DecoderSettings, Item, Message
from airflow_cdc_provider.connectors.decoders.common.saved_messages import read_messages
from airflow_cdc_provider.core.log.change_records import CONTROL_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.connectors.formats.golden import decoder, records
from tests.connectors.formats.registered_writer import registered
from tests.connectors.formats.test_recorded_debezium import PREFIXES, schemas_of
from tests.connectors.registry.schema_files import converter
from tests.debezium.record import RECORDED

pytestmark = [pytest.mark.jvm, pytest.mark.server]

OTHERS = CONTROL_OPERATIONS | {Operation.UNREADABLE}
NO_ARRAYS = ("public.arrays", "public.kinds")
"""Tables with arrays, which Protobuf cannot tell from null."""


def recorded(name: str) -> list[Message]:
    return list(read_messages((RECORDED / f"{name}.jsonl.gz").read_bytes(), name, "", False))


def decoded(name: str, messages: Iterable[Message], schemas: Iterable[TableSchema] = ()) -> list[Item]:
    known = {schema.table: CopiedTable(TableRule(schema.table), schema) for schema in schemas}
    setting = DecoderSettings(1, known or None, {"topic_prefix": PREFIXES[name.partition("_")[0]]})
    reader = decoder("debezium", setting)
    return [item for message in messages for item in reader.decode(message)]


NIGHTLY = pytest.mark.nightly


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("postgres", "avro"),
        ("mariadb", "json schema"),
        pytest.param("mariadb", "avro", marks=NIGHTLY),
        pytest.param("postgres", "json schema", marks=NIGHTLY),
        pytest.param("postgres_numeric", "json schema", marks=NIGHTLY),
    ],
)
def test_avro_and_json_schema_give_the_records_of_json(registry: EmbeddedRegistry, name: str, form: str) -> None:
    messages = recorded(name)
    sent = registered(registry.url, form, messages, **subjects_of(form))
    assert all(message.value is None or message.value[0] == 0 for message in sent)
    found = decoded(name, converter(registry.connection).messages(sent))
    assert without_displayed_text(found) == without_displayed_text(decoded(name, messages))
    assert Operation.UNREADABLE not in {record.op for record in records(found)}


@pytest.mark.parametrize("name", ["postgres", pytest.param("mariadb", marks=NIGHTLY)])
def test_protobuf_gives_the_records_of_json_without_schemas(registry: EmbeddedRegistry, name: str) -> None:
    """With the schemas of the tables declared: Protobuf does not contain the names of Debezium's types."""
    messages = [one for one in recorded(name) if not any(one.topic.endswith(table) for table in NO_ARRAYS)]
    schemas = schemas_of(decoded(name, messages)).values()
    bare = [message._replace(value=payload(message.value), key=payload(message.key)) for message in messages]
    sent = registered(registry.url, "protobuf", messages, **subjects_of("protobuf"))
    found = decoded(name, converter(registry.connection).messages(sent), schemas)
    assert comparable(found) == comparable(decoded(name, bare, schemas))
    assert len(records(found)) > 50


def subjects_of(form: str) -> dict[str, Any]:
    """Apicurio gives all versions of a subject the type of the first one."""
    return {"subject.name.strategy": lambda context, _record: f"{form} {context.topic}-{context.field}"}


def comparable(items: Iterable[Item]) -> list[Item]:
    """Empty lists of messages without rows are null in JSON, and the bytes of bad records are of another form."""
    return [
        replace(item, after=None, position="") if isinstance(item, ChangeRecord) and item.op in OTHERS else item
        for item in items
    ]


def payload(data: bytes | None) -> bytes | None:
    """The text of the payload as it is in the message."""
    if data is None:
        return None
    start = data.index(b'"payload":') + len(b'"payload":')
    assert json.loads(data[start:-1]) == json.loads(data)["payload"]
    return data[start:-1]


def without_displayed_text(items: Iterable[Item]) -> list[Item]:
    """Without what differs and is only displayed: the position of a logical message may begin at its source block."""
    changes = [item for item in items if isinstance(item, ChangeRecord | TableSchema)]
    return [
        replace(one, position="") if isinstance(one, ChangeRecord) and one.op == Operation.MESSAGE else one
        for one in changes
    ]

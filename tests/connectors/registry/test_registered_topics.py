"""Messages with registered schemas in topics of a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.log.registered_schemas import SchemaFiles
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.debezium_encoder import FIELDS, ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.registered_writer import registered
from tests.connectors.formats.simulator import Simulator
from tests.connectors.kafka_topics import Topics
from tests.connectors.registry.schema_files import SchemasInMemory
from tests.registry_front import RegistryFront, registry_front
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server]
POSTGRES = ConnectorSetup("postgresql", schemas=False, transactions=True, headers=True)
ADDED = {"type": "string", "optional": True, "field": "added"}


class RegisteredTopics(Topics):
    """Topics whose sources use a registry."""

    def __init__(self, broker: EmbeddedKafka, prefix: str, registry: ConnectionInfo) -> None:
        super().__init__(broker, prefix)
        self.registry = registry
        self.files: SchemaFiles = SchemasInMemory()

    def source(self, **options: Any) -> KafkaSource:
        made = super().source(registry="r", **options)
        made.use_registry(RegistryAccess(self.registry, self.files))
        return made


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def front(registry: EmbeddedRegistry) -> Iterator[RegistryFront]:
    with registry_front(registry.url) as front:
        yield front


@pytest.fixture
def topics(broker: EmbeddedKafka, front: RegistryFront) -> RegisteredTopics:
    return RegisteredTopics(broker, f"p{os.urandom(4).hex()}", ConnectionInfo("r", front.url))


def plain(count: int = 60, fields: list[dict[str, Any]] = FIELDS, seed: int = 1) -> list[Message]:
    history = Simulator(Random(seed), moves=False, late_check=False).history(count)
    made = with_schemas(DebeziumEncoder(POSTGRES, Random(seed)).messages(history), fields=fields)
    return [message for message in made if message.value is not None]


def written(registry: EmbeddedRegistry, topic: str, messages: list[Message], form: str = "avro") -> list[Message]:
    return registered(registry.url, form, [one._replace(topic=topic) for one in messages])


def changes(items: list[StreamItem]) -> list[ChangeRecord]:
    return [item for item in items if isinstance(item, ChangeRecord)]


def images(items: list[StreamItem]) -> list[tuple[str, str | None, str | None]]:
    return sorted((one.order_key, one.key, one.after) for one in changes(items))


@pytest.mark.parametrize("form", ["avro", pytest.param("json schema", marks=pytest.mark.nightly)])
def test_topics_are_read_as_if_they_were_json(topics: RegisteredTopics, registry: EmbeddedRegistry, form: str) -> None:
    topic = topics.make("s.t", 2)
    topics.send(topic, written(registry, topic, plain(), form))
    tasks = topics.tasks()
    assert [task.table for task in tasks] == ["s.t"]
    assert topics.source().check(tasks) == []
    found, _ = topics.window({}, tasks)
    as_json = Topics(topics.broker, f"{topics.prefix}json")
    as_json.send(as_json.make("s.t", 2), plain())
    wanted, _ = as_json.window({}, as_json.tasks())
    assert images(found) == images(wanted) and len(images(found)) > 50


def test_each_message_of_a_window_is_decoded_with_its_own_schema(
    topics: RegisteredTopics, registry: EmbeddedRegistry
) -> None:
    topic = topics.make("s.t")
    before, after = plain(40), plain(40, [*FIELDS, ADDED], seed=2)
    pairs = zip(written(registry, topic, before), written(registry, topic, after), strict=False)
    mixed = [message for pair in pairs for message in pair]
    topics.send(topic, mixed)
    items, _ = topics.window({}, topics.tasks())
    schemas = {item.schema_id: item.names for item in items if isinstance(item, TableSchema)}
    assert sorted(map(len, schemas.values())) == [len(FIELDS), len(FIELDS) + 1]
    for record in changes(items):
        assert record.op != Operation.UNREADABLE
        if record.after_complete:
            assert tuple(json.loads(record.after or "")) == schemas[record.schema_id]


def test_an_unknown_id_stops_the_window_and_loses_nothing(topics: RegisteredTopics, registry: EmbeddedRegistry) -> None:
    topic = topics.make("s.t")
    sent = written(registry, topic, plain())
    topics.send(topic, sent)
    tasks, first = topics.tasks(), sent[0]
    stranger = first._replace(value=b"\0" + (888_888).to_bytes(4, "big") + (first.value or b"")[5:])
    topics.send(topic, [stranger])
    with pytest.raises(SourceUnavailable) as raised:
        topics.window({}, tasks)
    (problem,) = raised.value.problems
    assert problem.code == "SRC108" and f"{topic}/0, offset {len(sent)}" in problem.where
    assert f"subject {topic}-value" in problem.where
    own_id = str(int.from_bytes((first.value or b"")[1:5], "big"))
    schema = topics.files.registered_schema(own_id)
    assert schema is not None
    topics.files.write_registered_schema("888888", schema)
    items, _ = topics.window({}, tasks)
    assert {record.op for record in changes(items)}.isdisjoint({Operation.UNREADABLE})
    assert len(changes(items)) == len(sent) + 1


def test_damaged_content_becomes_a_bad_record_of_its_table_with_its_bytes(
    topics: RegisteredTopics, registry: EmbeddedRegistry
) -> None:
    topic = topics.make("s.t")
    sent = written(registry, topic, plain())
    value = sent[40].value or b""
    damaged = sent[40]._replace(value=value[:-9])
    topics.send(topic, [*sent[:40], damaged, *sent[41:]])
    items, _ = topics.window({}, topics.tasks())
    (bad,) = [record for record in changes(items) if record.op == Operation.UNREADABLE]
    content = undecoded(bad)
    assert bad.table == "s.t" and content is not None
    assert b64decode(content.raw) == damaged.value
    assert content.reason.startswith("EVT001 Avro that does not match its schema")
    (task,) = topics.tasks()
    assert topics.source().reread(bad, task, task.schema) == [bad]


def test_schemas_in_staging_make_the_registry_unnecessary(
    topics: RegisteredTopics, registry: EmbeddedRegistry, tmp_path: Path
) -> None:
    topic = topics.make("s.t")
    topics.files = ChangeLog(LocalStore(str(tmp_path)))
    topics.send(topic, written(registry, topic, plain()))
    tasks = topics.tasks()
    first, _ = topics.window({}, tasks)
    topics.registry = ConnectionInfo("r", "http://127.0.0.1:1")
    again, _ = topics.window({}, topics.tasks())
    assert images(again) == images(first)
    assert [problem.code for problem in topics.source().check(tasks)] == ["SRC110", "SRC110"]
    topics.files = SchemasInMemory()
    with pytest.raises(SourceUnavailable, match="SRC110"):
        topics.window({}, tasks)


def test_check_names_the_subjects_that_cannot_be_read(
    topics: RegisteredTopics, registry: EmbeddedRegistry, front: RegistryFront
) -> None:
    topic = topics.make("s.t")
    sent = written(registry, topic, plain(5))
    topics.send(topic, sent)
    front.denied = {f"/schemas/ids/{int.from_bytes((sent[0].value or b'')[1:5], 'big')}"}
    (problem,) = topics.source().check([])
    assert problem.code == "SRC109" and f"subject {topic}-value" in problem.where and "grant" in problem.do


def test_without_a_registry_check_names_the_key_to_add(topics: RegisteredTopics, registry: EmbeddedRegistry) -> None:
    topic = topics.make("s.t")
    topics.send(topic, written(registry, topic, plain(5)))
    source = Topics(topics.broker, topics.prefix).source()
    (problem,) = source.check([])
    assert (problem.code, problem.where) == ("SRC107", topic) and "`registry`" in problem.do


@pytest.mark.nightly
def test_schemas_may_be_named_in_headers_by_guid(
    topics: RegisteredTopics, registry: EmbeddedRegistry, front: RegistryFront
) -> None:
    topic = topics.make("s.t")
    named = []
    for message in written(registry, topic, plain()):
        headers = list(message.headers)
        parts = {}
        for side in ("key", "value"):
            data = getattr(message, side)
            if data is not None:
                number = int.from_bytes(data[1:5], "big")
                guid = f"00000000-0000-4000-8000-{number:012x}"
                front.guids[guid] = number
                headers.append((f"__{side}_schema_id", b"\1" + bytes.fromhex(guid.replace("-", ""))))
                parts[side] = data[5:]
        named.append(message._replace(headers=tuple(headers), **parts))
    topics.send(topic, named)
    items, _ = topics.window({}, topics.tasks())
    assert {record.op for record in changes(items)}.isdisjoint({Operation.UNREADABLE}) and len(changes(items)) > 50


READ = """
import json, sys
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
options, client, url, folder = json.loads(sys.argv[1])
source = KafkaSource(Source("kafka", "k", options=options), ConnectionInfo("k", extra=client), "feed")
source.use_registry(RegistryAccess(ConnectionInfo("r", url), ChangeLog(LocalStore(folder))))
assert source.tables()
"""


@pytest.mark.nightly
def test_a_reader_that_is_killed_between_two_requests_leaves_whole_schemas(
    topics: RegisteredTopics, registry: EmbeddedRegistry, front: RegistryFront, tmp_path: Path
) -> None:
    topic = topics.make("s.t")
    topics.files = ChangeLog(LocalStore(str(tmp_path)))
    topics.send(topic, written(registry, topic, plain()))
    options = {"topics": [f"{topics.prefix}.*"], "format": "debezium", "topic_prefix": topics.prefix, "registry": "r"}
    arguments = json.dumps([options, topics.broker.client, front.url, str(tmp_path)])
    front.stalled_after = 1
    with subprocess.Popen([sys.executable, "-c", READ, arguments]) as reader:
        until(lambda: len(front.paths) == 2, "the second request")
        reader.kill()
    front.running.set()
    (first, second) = (path.rpartition("/")[2] for path in front.paths)
    assert topics.files.registered_schema(first) is not None and topics.files.registered_schema(second) is None
    items, _ = topics.window({}, topics.tasks())
    assert len(changes(items)) > 50 and front.paths[2:] == front.paths[1:2]

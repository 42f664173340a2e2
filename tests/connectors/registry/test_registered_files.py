"""Messages with registered schemas in files: rows with the bytes that were in the topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import writer

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source_features import RegistryAccess
from airflow_cdc_provider.connectors.transports.files.source import FilesSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.registered_schemas import SchemaFiles
from airflow_cdc_provider.sandbox.registry import EmbeddedRegistry
from tests.connectors.formats.complete_schemas import with_schemas
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.registered_writer import registered
from tests.connectors.formats.simulator import Simulator
from tests.connectors.registry.schema_files import SchemasInMemory
from tests.connectors.test_files_source import Feed

pytestmark = [pytest.mark.jvm, pytest.mark.server]
POSTGRES = ConnectorSetup("postgresql", schemas=False, transactions=True, headers=True)


class RegisteredFeed(Feed):
    """Files whose source uses a registry."""

    def __init__(self, folder: Path, registry: ConnectionInfo) -> None:
        super().__init__(folder, registry="r")
        self.registry = registry
        self.files: SchemaFiles = SchemasInMemory()

    @property
    def source(self) -> FilesSource:
        made = super().source
        made.use_registry(RegistryAccess(self.registry, self.files))
        return made


def parquet(messages: Sequence[Message]) -> bytes:
    rows = {name: [getattr(one, name) for one in messages] for name in ("topic", "key", "value")}
    packed = BytesIO()
    pq.write_table(pa.table(rows), packed)
    return packed.getvalue()


def avro(messages: Sequence[Message]) -> bytes:
    fields = [
        {"name": "topic", "type": "string"},
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
    ]
    packed = BytesIO()
    rows = [{"topic": one.topic, "key": one.key, "value": one.value} for one in messages]
    writer(packed, {"type": "record", "name": "message", "fields": fields}, rows)
    return packed.getvalue()


def changes(feed: Feed) -> list[ChangeRecord]:
    return [item for item in feed.everything() if isinstance(item, ChangeRecord)]


@pytest.mark.parametrize("pack", [parquet, avro])
def test_files_are_read_as_if_their_messages_were_json(
    tmp_path: Path, registry: EmbeddedRegistry, pack: Callable[[Sequence[Message]], bytes]
) -> None:
    history = Simulator(Random(1), moves=False, late_check=False).history(60)
    sent = [one for one in with_schemas(DebeziumEncoder(POSTGRES, Random(1)).messages(history)) if one.value]
    sent = [one._replace(channel="p.s.t/0") for one in sent]
    (tmp_path / "json").mkdir()
    as_json = Feed(tmp_path / "json")
    as_json.write("1.parquet", parquet(sent))
    (tmp_path / "registered").mkdir()
    feed = RegisteredFeed(tmp_path / "registered", ConnectionInfo("r", registry.url))
    feed.write("1", pack(registered(registry.url, "avro", sent)))
    assert feed.source.check(feed.tasks()) == []
    found = [(one.order_key, one.key, one.after) for one in changes(feed)]
    assert found == [(one.order_key, one.key, one.after) for one in changes(as_json)] and len(found) > 50

"""Messages of Connect's JsonConverter, with schemas, encoded anew by the serializers of Confluent's own client, which
register the schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Self

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.common.protobuf import _init_pool
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.message import Message
from tests.connectors.formats.connect_json_schema import json_schema_of
from tests.connectors.formats.connect_protobuf import fill, message_class
from tests.connectors.formats.connect_writer import avro_of, binary

Encode = Callable[[Any, SerializationContext], bytes]


def registered(url: str, form: str, messages: Iterable[Message], **settings: Any) -> list[Message]:
    """The messages, encoded with schemas in the registry at ``url``."""
    with RegisteredWriter(url, form, **settings) as writer:
        return list(writer.messages(messages))


class RegisteredWriter:
    """``settings``: of the serializers, such as the subject name strategy."""

    def __init__(self, url: str, form: str, **settings: Any) -> None:
        self.client = SchemaRegistryClient({"url": url, "timeout": 60})
        self._form = form
        self._settings = settings
        self._encoders: dict[tuple[str, str], Encode] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def messages(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            headers = list(message.headers)
            value = self.encode(message.value, message.topic, MessageField.VALUE, headers)
            key = self.encode(message.key, message.topic, MessageField.KEY, headers)
            yield message._replace(value=value, key=key, headers=tuple(headers))

    def encode(self, data: bytes | None, topic: str, side: str, headers: list[Any]) -> bytes | None:
        if data is None:
            return None
        parsed = json.loads(data, parse_float=Decimal)
        schema, payload = parsed["schema"], parsed["payload"]
        text = dumps(schema)
        encode = self._encoders.get((side, text))
        if encode is None:
            encode = self._encoders[side, text] = self._encoder(schema, f"{topic}-{side}-{len(self._encoders)}.proto")
        return encode(payload, SerializationContext(topic, side, headers))

    def _encoder(self, schema: Any, file: str) -> Encode:
        if self._form == "avro":
            text = json.dumps(avro_of({**schema, "optional": False}, set()))
            avro = AvroSerializer(self.client, text, conf=self._settings)
            return lambda payload, context: avro(binary(schema, payload), context)
        if self._form == "json schema":
            text = json.dumps(json_schema_of({**schema, "optional": False}))
            plain = JSONSerializer(text, self.client, conf={"validate": False, **self._settings}, json_encode=dumps)
            return lambda payload, context: plain(payload, context)
        pool = DescriptorPool()
        _init_pool(pool)
        kind = message_class(schema, pool, file)
        proto = ProtobufSerializer(kind, self.client, conf=self._settings)
        return lambda payload, context: proto(fill(kind(), schema, payload), context)

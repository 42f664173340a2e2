"""The messages of the Pub/Sub service in protocol buffers, defined at run time, without generated code.

An event is encoded once, when it is published. The encoding of a repeated field is the sequence of its elements, so
encoded events are concatenated.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from airflow_cdc_provider.sandbox.salesforce.avro import varint

PACKAGE = "eventbus.v1"
SERVICE = f"{PACKAGE}.PubSub"
STRING, BYTES, BOOL, INT32, INT64, ENUM, MESSAGE = 9, 12, 8, 5, 3, 14, 11

# message → fields (name, number, type, repeated or not, named type)
MESSAGES: dict[str, list[tuple[Any, ...]]] = {
    "TopicInfo": [
        ("topic_name", 1, STRING),
        ("tenant_guid", 2, STRING),
        ("can_publish", 3, BOOL),
        ("can_subscribe", 4, BOOL),
        ("schema_id", 5, STRING),
        ("rpc_id", 6, STRING),
    ],
    "TopicRequest": [("topic_name", 1, STRING)],
    "EventHeader": [("key", 1, STRING), ("value", 2, BYTES)],
    "ProducerEvent": [
        ("id", 1, STRING),
        ("schema_id", 2, STRING),
        ("payload", 3, BYTES),
        ("headers", 4, MESSAGE, True, "EventHeader"),
    ],
    "ConsumerEvent": [("event", 1, MESSAGE, False, "ProducerEvent"), ("replay_id", 2, BYTES)],
    "FetchRequest": [
        ("topic_name", 1, STRING),
        ("replay_preset", 2, ENUM, False, "ReplayPreset"),
        ("replay_id", 3, BYTES),
        ("num_requested", 4, INT32),
        ("auth_refresh", 5, STRING),
    ],
    "FetchResponse": [
        ("events", 1, MESSAGE, True, "ConsumerEvent"),
        ("latest_replay_id", 2, BYTES),
        ("rpc_id", 3, STRING),
        ("pending_num_requested", 4, INT32),
    ],
    "SchemaRequest": [("schema_id", 1, STRING)],
    "SchemaInfo": [("schema_json", 1, STRING), ("schema_id", 2, STRING), ("rpc_id", 3, STRING)],
}
PRESETS = ("LATEST", "EARLIEST", "CUSTOM")


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="sandbox_pubsub.proto", package=PACKAGE, syntax="proto3")
    presets = file.enum_type.add(name="ReplayPreset")
    for number, name in enumerate(PRESETS):
        presets.value.add(name=name, number=number)
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind, *more in fields:
            repeated, named = (*more, False, None)[:2] if more else (False, None)
            field = described.field.add(name=name, number=number, type=kind, label=3 if repeated else 1)
            if named:
                field.type_name = f".{PACKAGE}.{named}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def message(name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


TopicInfo, TopicRequest = message("TopicInfo"), message("TopicRequest")
SchemaInfo, SchemaRequest = message("SchemaInfo"), message("SchemaRequest")
ProducerEvent, FetchRequest, FetchResponse = message("ProducerEvent"), message("FetchRequest"), message("FetchResponse")


def produced(event_id: str, schema_id: str, payload: bytes) -> bytes:
    """The encoded field ``event`` of a ConsumerEvent."""
    body: bytes = ProducerEvent(id=event_id, schema_id=schema_id, payload=payload).SerializeToString()
    return b"\x0a" + varint(len(body)) + body


def consumed(event: bytes, replay_id: bytes) -> bytes:
    """One encoded element of ``events`` in a FetchResponse. ``event`` is a result of ``produced``."""
    body = event + b"\x12" + varint(len(replay_id)) + replay_id
    return b"\x0a" + varint(len(body)) + body

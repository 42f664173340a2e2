"""The messages of the Pub/Sub API that we speak, as protobuf descriptors made at run time.

Generated stubs would tie us to one generation of protobuf, and Airflow and Spark bring theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

PACKAGE = "eventbus.v1"
SERVICE = f"{PACKAGE}.PubSub"
LATEST, EARLIEST, CUSTOM = 0, 1, 2

# Message -> fields as (name, number, type). A type that begins with a capital is a message, "…*" repeated.
MESSAGES: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "TopicRequest": (("topic_name", 1, "string"),),
    "TopicInfo": (
        ("topic_name", 1, "string"),
        ("tenant_guid", 2, "string"),
        ("can_publish", 3, "bool"),
        ("can_subscribe", 4, "bool"),
        ("schema_id", 5, "string"),
        ("rpc_id", 6, "string"),
    ),
    "SchemaRequest": (("schema_id", 1, "string"),),
    "SchemaInfo": (("schema_json", 1, "string"), ("schema_id", 2, "string"), ("rpc_id", 3, "string")),
    "ProducerEvent": (("id", 1, "string"), ("schema_id", 2, "string"), ("payload", 3, "bytes")),
    "ConsumerEvent": (("event", 1, "ProducerEvent"), ("replay_id", 2, "bytes")),
    "FetchRequest": (
        ("topic_name", 1, "string"),
        ("replay_preset", 2, "int32"),  # an enum has the same bytes
        ("replay_id", 3, "bytes"),
        ("num_requested", 4, "int32"),
    ),
    "FetchResponse": (
        ("events", 1, "ConsumerEvent*"),
        ("latest_replay_id", 2, "bytes"),
        ("rpc_id", 3, "string"),
        ("pending_num_requested", 4, "int32"),
    ),
}


@cache
def message(name: str) -> Any:
    """The class of a message. In a pool of our own: another package may bring its own eventbus.v1."""
    from google.protobuf import descriptor_pool, message_factory

    return message_factory.GetMessageClass(_pool(descriptor_pool).FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool(descriptor_pool: Any) -> Any:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="airflow_cdc_pubsub.proto", package=PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        made = file.message_type.add(name=name)
        for field, number, kind in fields:
            plain = kind.removesuffix("*")
            label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            if plain[0].isupper():
                made.field.add(
                    name=field, number=number, label=label, type=kinds.TYPE_MESSAGE, type_name=f".{PACKAGE}.{plain}"
                )
            else:
                scalar = kinds.Type.Value(f"TYPE_{plain.upper()}")
                made.field.add(name=field, number=number, label=label, type=scalar)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool

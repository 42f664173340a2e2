"""The messages of the Pub/Sub API, as protobuf descriptors that are built at run time.

Generated stubs would require one major version of protobuf, and Airflow and Spark bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

PACKAGE = "eventbus.v1"
SERVICE = f"{PACKAGE}.PubSub"
LATEST, EARLIEST, CUSTOM = 0, 1, 2

# Message -> fields as (name, number, type). A capitalised type is a message, "…*" is repeated.
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
        ("replay_preset", 2, "int32"),  # encoded like its enum
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
def message_class(name: str) -> Any:
    """The class of a message. The pool is private because another package may register eventbus.v1."""
    from google.protobuf import descriptor_pool, message_factory

    return message_factory.GetMessageClass(_pool(descriptor_pool).FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool(descriptor_pool: Any) -> Any:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="airflow_cdc_pubsub.proto", package=PACKAGE, syntax="proto3")
    proto = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        descriptor = file.message_type.add(name=name)
        for field, number, kind in fields:
            plain = kind.removesuffix("*")
            label = proto.LABEL_REPEATED if kind.endswith("*") else proto.LABEL_OPTIONAL
            if plain[0].isupper():
                descriptor.field.add(
                    name=field, number=number, label=label, type=proto.TYPE_MESSAGE, type_name=f".{PACKAGE}.{plain}"
                )
            else:
                scalar = proto.Type.Value(f"TYPE_{plain.upper()}")
                descriptor.field.add(name=field, number=number, label=label, type=scalar)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool

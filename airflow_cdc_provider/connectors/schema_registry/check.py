"""Problems of messages with registered schemas, and of the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.schema_registry.framing import KEY, VALUE, framed, names_schema, usage
from airflow_cdc_provider.connectors.schema_registry.schemas import RegisteredSchemas
from airflow_cdc_provider.core.errors import Problem


def registry_problems(heads: Iterable[Message], schemas: RegisteredSchemas | None) -> list[Problem]:
    """``schemas``: None if the definition names no registry."""
    if schemas is None:
        return _without_registry(heads)
    used: dict[str, str] = {}
    for schema_id, used_by in _used_schemas(heads):
        used.setdefault(schema_id, used_by)
    found = (schemas.problem(schema_id, used_by) for schema_id, used_by in used.items())
    return [problem for problem in found if problem is not None]


def _without_registry(heads: Iterable[Message]) -> list[Problem]:
    topics = sorted({message.topic for message in heads if names_schema(message)})
    if not topics:
        return []
    return [
        Problem(
            "SRC107",
            "messages contain ids of registered schemas",
            where=", ".join(topics),
            found="no `registry` under `source`",
            do="create an Airflow connection with the address of the schema registry, and set `registry` to its id",
            data="the messages remain in the feed",
        )
    ]


def _used_schemas(heads: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Schema id, and the message that names it. Damaged messages are left to the decoder."""
    for message in heads:
        for side, part in ((VALUE, message.value), (KEY, message.key)):
            try:
                found = framed(part, message.headers, side.header) if part is not None else None
            except DecodeError:
                continue
            if found is not None:
                yield found.schema_id, usage(message, side)

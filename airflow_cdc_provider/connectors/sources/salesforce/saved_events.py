"""Decode saved change events, one per line: ``{"replay_id": …, "schema_id": …, "payload": …}``, bytes in base64.

The schema file is ``{"events": {schema id: Avro schema of the event}, "objects": [description of each object]}``: the
responses of the Pub/Sub API's GetSchema and of ``sobjects/<name>/describe``.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.saved_messages import decompress, tasks_of
from airflow_cdc_provider.connectors.source import StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.decode import EventDecoder
from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.sources.salesforce.types import parse_description
from airflow_cdc_provider.core.errors import CommandRefused


def decoded(kind: str, name: str, data: bytes, schemas: Any, options: Mapping[str, Any]) -> Iterator[StreamItem]:
    """Raises CommandRefused (CLI017) if a line is no event, or the schema file is not valid."""
    try:
        objects = {description["name"]: parse_description(description) for description in schemas["objects"]}
        texts = {str(schema_id): json.dumps(avro) for schema_id, avro in schemas["events"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise CommandRefused.of(
            "CLI017",
            "the schema file does not describe the events",
            found="no schema file" if schemas is None else type(error).__name__,
            allowed='{"events": {schema id: Avro schema}, "objects": [describe response]}',
            do="pass the file with --schema",
        ) from error
    tasks = tasks_of(entity.schema for entity in objects.values())
    decoder = EventDecoder(tasks, objects.__getitem__, _reader(texts), name, Transactions(ChannelPosition(b""), 1))
    for number, line in enumerate(decompress(data, name).splitlines(), 1):
        if line.strip():
            decoder.feed(Delivery((_event(line, f"{name}:{number}"),)))
            yield from decoder.items
            decoder.items.clear()


def _reader(texts: Mapping[str, str]) -> Callable[[str], EventSchema]:
    parsed: dict[str, EventSchema] = {}

    def schema(schema_id: str) -> EventSchema:
        if schema_id not in texts:
            raise DecodeError(f"the schema file has no event schema {schema_id}")
        if schema_id not in parsed:
            parsed[schema_id] = parse_event_schema(schema_id, texts[schema_id])
        return parsed[schema_id]

    return schema


def _event(line: bytes, where: str) -> ChannelEvent:
    try:
        event = json.loads(line)
        return ChannelEvent(b64decode(event["replay_id"]), str(event["schema_id"]), b64decode(event["payload"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CommandRefused.of(
            "CLI017",
            "a line is not a saved event",
            where=where,
            allowed='{"replay_id": …, "schema_id": …, "payload": …}, bytes in base64',
        ) from error

"""The outer form of keys and values: with a schema beside the payload, or bare. Pure.

A schema is many times as long as its payload and the same in message after message: what stands before the payload is
compared as text, and read only when it was not seen before.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import NOT_JSON, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps

BEGIN = '{"schema":'
REGISTERED = b"\0"
"""What the converters of Avro, Protobuf and JSON Schema begin with; then comes the number of a schema."""
MIDDLE = re.compile(r'\s*,\s*"payload"\s*:')
MOST_REMEMBERED = 64
BLANKS = " \t\r\n"


class ConnectValue(NamedTuple):
    """``schema`` and its text; None and empty where there was none. ``raw`` is the text of the payload."""

    payload: Any
    schema: dict[str, Any] | None = None
    text: str = ""
    raw: str = ""


def key_of(topic: str) -> str:
    """What the schemas of a topic's keys are remembered under."""
    return f"key of {topic}"


class ConnectReader:
    """Remembers the schemas of each topic, newest first."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[str, dict[str, Any], str]]] = {}

    def read(self, data: bytes, topic: str) -> ConnectValue:
        """Raises DecodeError."""
        if data.startswith(REGISTERED):
            raise DecodeError(
                NOT_JSON, "not JSON, but for readers of a schema registry: set the connector's JsonConverter"
            )
        text = exact_json.text_of(data)
        if not text.startswith(BEGIN):
            return _unwrapped(exact_json.parse_text(text), text)
        for prefix, schema, schema_text in self._seen.get(topic, ()):
            if text.startswith(prefix):
                rest = text[len(prefix) :].rstrip(BLANKS)
                if not rest.endswith("}"):
                    break
                raw = rest[:-1].rstrip(BLANKS)
                with contextlib.suppress(DecodeError):  # what is wrong is told of the whole
                    return ConnectValue(exact_json.parse_text(raw), schema, schema_text, raw)
                break
        told = _unwrapped(exact_json.parse_text(text), "")
        if told.schema is not None:
            self._remember(topic, text, told)
        return told

    def _remember(self, topic: str, text: str, told: ConnectValue) -> None:
        assert told.schema is not None
        _, end = exact_json.parse_at(text, len(BEGIN))
        middle = MIDDLE.match(text, end)
        if middle is not None:
            prefix = text[: middle.end()]
            self._seen[topic] = [(prefix, told.schema, told.text), *self._seen.get(topic, [])][:MOST_REMEMBERED]


def _unwrapped(value: Any, text: str) -> ConnectValue:
    """A row may have columns of these names: a schema is an object that has a ``type``."""
    if isinstance(value, dict) and len(value) == 2 and "schema" in value and "payload" in value:
        schema = value["schema"]
        if schema is None:
            return ConnectValue(value["payload"])
        if isinstance(schema, dict) and "type" in schema:
            return ConnectValue(value["payload"], schema, dumps(schema))
    return ConnectValue(value, raw=text)

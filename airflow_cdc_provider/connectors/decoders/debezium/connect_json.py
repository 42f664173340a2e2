"""Keys and values as written by Connect's JsonConverter: with a schema and a payload, or bare. Pure.

A schema is much longer than its payload and the same in many messages. The text up to the payload is compared with
known prefixes, and parsed only if it is new.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.connectors.decoders.common.dead_letters import DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps

PREFIX = '{"schema":'
MIDDLE = re.compile(r'\s*,\s*"payload"\s*:')
MAX_CACHED = 64
BLANKS = " \t\r\n"


class ConnectValue(NamedTuple):
    """``schema`` and its ``text``: None and empty if there is none. ``raw``: the text of the payload."""

    payload: Any
    schema: dict[str, Any] | None = None
    text: str = ""
    raw: str = ""


def key_of(topic: str) -> str:
    """The cache key for the schemas of a topic's keys."""
    return f"key of {topic}"


class ConnectReader:
    """Caches the schemas of each topic, newest first."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[str, dict[str, Any], str]]] = {}
        self._given: dict[str, dict[str, Any]] = {}

    def read(self, data: bytes, topic: str, schema_text: str = "") -> ConnectValue:
        """``schema_text``: the schema, if ``data`` are the payload alone. Raises DecodeError."""
        if schema_text:
            schema = self._given.get(schema_text)
            if schema is None:
                schema = self._given[schema_text] = exact_json.parse_text(schema_text)
            raw = exact_json.text_of(data)
            return ConnectValue(exact_json.parse_text(raw), schema, schema_text, raw)
        text = exact_json.text_of(data)
        if not text.startswith(PREFIX):
            return _split_schema(exact_json.parse_text(text), text)
        for prefix, schema, schema_text in self._seen.get(topic, ()):
            if text.startswith(prefix):
                rest = text[len(prefix) :].rstrip(BLANKS)
                if not rest.endswith("}"):
                    break
                raw = rest[:-1].rstrip(BLANKS)
                with contextlib.suppress(DecodeError):  # parsing the whole message gives the error
                    return ConnectValue(exact_json.parse_text(raw), schema, schema_text, raw)
                break
        value = _split_schema(exact_json.parse_text(text), "")
        if value.schema is not None:
            self._remember(topic, text, value)
        return value

    def _remember(self, topic: str, text: str, value: ConnectValue) -> None:
        assert value.schema is not None
        _, end = exact_json.parse_at(text, len(PREFIX))
        middle = MIDDLE.match(text, end)
        if middle is not None:
            prefix = text[: middle.end()]
            self._seen[topic] = [(prefix, value.schema, value.text), *self._seen.get(topic, [])][:MAX_CACHED]


def _split_schema(value: Any, text: str) -> ConnectValue:
    """A row may have columns named ``schema`` and ``payload``: a schema is an object with a ``type``."""
    if isinstance(value, dict) and len(value) == 2 and "schema" in value and "payload" in value:
        schema = value["schema"]
        if schema is None:
            return ConnectValue(value["payload"])
        if isinstance(schema, dict) and "type" in schema:
            return ConnectValue(value["payload"], schema, dumps(schema))
    return ConnectValue(value, raw=text)

"""Placeholders for values that a connector did not send because they are large and unchanged."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import md5
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.debezium.semantics import (
    DATA,
    DECIMAL,
    LENGTH,
    TIME,
    Semantic,
)

HEX = "hex:"
ARRAY_ITEMS = frozenset(
    {
        *(Semantic(kind) for kind in ("int32", "int64", "string", "bytes")),
        Semantic("int32", f"{TIME}Date"),
        Semantic("string", f"{DATA}Json"),
        Semantic("string", f"{DATA}Uuid"),
    }
)
"""Item types of arrays that have a placeholder in the PostgreSQL connector."""
WITH_PLACEHOLDER = frozenset(
    {Semantic("string"), Semantic("bytes"), Semantic("string", f"{DATA}Json"), Semantic("string", f"{DATA}Xml")}
)
IN_ROWS = frozenset({"boolean", "int8", "int16", "int32", "int64", "float", "float32", "double", "float64"})
"""Types whose values PostgreSQL stores in their rows, whatever their names."""
NAMED_IN_ROWS = frozenset(
    {DECIMAL, *(f"{DATA}{name}" for name in ("VariableScaleDecimal", "Uuid", "Enum", "EnumSet", "geometry.Point"))}
)
"""A number moves out of a row only if the row has more than 8 kB without all its texts: more than 16,000 digits."""
BITS = f"{DATA}Bits"
MAX_BITS_IN_ROWS = 128
"""Values of up to 24 bytes, with their length, are never moved."""


def has_no_placeholder(semantic: Semantic | None) -> bool:
    """Whether null may mean that the value was not sent: PostgreSQL may store it outside of its row, and the connector
    has no placeholder for its type. ``semantic``: None if it is unknown."""
    if semantic is None or semantic.type == "map" or semantic.name.startswith(TIME):
        return False
    if semantic.type == "array":
        return semantic.inner is not None and replace(semantic.inner, parameters=()) not in ARRAY_ITEMS
    if semantic.name == BITS:
        return not 0 < (semantic.number(LENGTH) or 0) <= MAX_BITS_IN_ROWS
    if semantic.type in IN_ROWS or semantic.name in NAMED_IN_ROWS:
        return False
    return replace(semantic, parameters=()) not in WITH_PLACEHOLDER


class Placeholders:
    """``text``: the value of the connector's ``unavailable.value.placeholder``."""

    def __init__(self, text: str) -> None:
        raw = bytes.fromhex(text.removeprefix(HEX)) if text.startswith(HEX) else text.encode()
        plain = text if not text.startswith(HEX) else raw.decode("utf-8", "replace")
        as_uuid = str(UUID(bytes=md5(raw, usedforsecurity=False).digest(), version=3))
        as_base64 = b64encode(raw).decode("ascii")
        self.texts = frozenset({plain, as_base64, raw.hex(), dumps({plain: plain})})
        self._lists = ([plain], [as_uuid], [as_base64], list(raw))
        self._map = {plain: plain}

    def known(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row without columns whose values are not known."""
        try:
            if self.texts.isdisjoint(row.values()):
                return row
        except TypeError:  # lists and maps are not hashable
            pass
        return {name: value for name, value in row.items() if not self._is_placeholder(value)}

    def _is_placeholder(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.texts
        if isinstance(value, list):
            return value in self._lists
        return isinstance(value, dict) and value == self._map

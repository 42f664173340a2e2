"""Placeholders for values that a connector did not send because they are large and unchanged."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import md5
from typing import Any
from uuid import UUID

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.debezium.semantics import DATA, TIME, Semantic

HEX = "hex:"
ARRAY_ITEMS = frozenset(
    {
        *(Semantic(kind) for kind in ("int32", "int64", "string", "bytes")),
        Semantic("int32", f"{TIME}Date"),
        Semantic("string", f"{DATA}Json"),
        Semantic("string", f"{DATA}Uuid"),
    }
)
"""Item types of arrays that have a placeholder in the PostgreSQL connector. Other unsent arrays are null."""


def has_no_placeholder(semantic: Semantic | None) -> bool:
    """Whether null may mean that the value was not sent."""
    if semantic is None or semantic.type != "array" or semantic.inner is None:
        return False
    return replace(semantic.inner, parameters=()) not in ARRAY_ITEMS


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

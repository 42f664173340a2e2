"""Named types of an Avro schema, put in wherever their names are used. Pure.

A record, an enum or a fixed is described where it is met first; from then on its name stands for it. A name without a
dot is meant in the namespace around it, or in none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


def resolved(schema: Any) -> Any:
    """Names become full names. Inside of a type that holds itself its name is left. Raises DecodeError."""
    try:
        return _Names().of(schema, "")
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise DecodeError(NO_SCHEMA, f"the file's schema is none of Avro ({type(error).__name__})") from error


class _Names:
    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        """Full name -> the type; itself the full name as long as the type is not read to its end."""

    def of(self, kind: Any, space: str) -> Any:
        """``space``: the namespace around it."""
        if isinstance(kind, str):
            return kind if kind in PRIMITIVES else self._by_name(kind, space)
        if isinstance(kind, list):
            return [self.of(branch, space) for branch in kind]
        type_ = kind["type"]
        if not isinstance(type_, str):  # the type itself, in a shell of its own
            return self.of(type_, space)
        if type_ in NAMED:
            return self._described(kind, space)
        if type_ == "array":
            return {**kind, "items": self.of(kind["items"], space)}
        if type_ == "map":
            return {**kind, "values": self.of(kind["values"], space)}
        return kind if type_ in PRIMITIVES else self._by_name(type_, space)

    def _by_name(self, name: str, space: str) -> Any:
        for full in (_full(name, space), name):
            if full in self._known:
                return self._known[full]
        raise DecodeError(NO_SCHEMA, "a type in the file's schema that is not described")

    def _described(self, kind: Mapping[str, Any], space: str) -> Any:
        full = _full(kind["name"], kind.get("namespace", space))
        self._known[full] = full
        made = {name: one for name, one in kind.items() if name != "namespace"} | {"name": full}
        if "fields" in kind:
            inner = full.rpartition(".")[0]
            made["fields"] = [{**field, "type": self.of(field["type"], inner)} for field in kind["fields"]]
        self._known[full] = made
        return made


def _full(name: str, space: str | None) -> str:
    return f"{space}.{name}" if space and "." not in name else name

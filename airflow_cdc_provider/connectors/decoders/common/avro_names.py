"""Named types of an Avro schema, expanded wherever they are referenced. Pure.

A record, an enum or a fixed is defined at its first occurrence and referenced by name afterwards. A name without a dot
belongs to the enclosing namespace, or to none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_SCHEMA, DecodeError

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


def resolve_names(schema: Any, references: Sequence[Any] = ()) -> Any:
    """Names become full names. A recursive reference stays a name. ``references``: schemas that define further names,
    each after those that it refers to. Raises DecodeError."""
    names = _Names()
    try:
        for reference in references:
            names.resolve(reference, "")
        return names.resolve(schema, "")
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise DecodeError(NO_SCHEMA, f"not an Avro schema ({type(error).__name__})") from error


class _Names:
    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        """Full name → the type; the full name itself while the type is being resolved."""

    def resolve(self, kind: Any, space: str) -> Any:
        """``space``: the enclosing namespace."""
        if isinstance(kind, str):
            return kind if kind in PRIMITIVES else self._by_name(kind, space)
        if isinstance(kind, list):
            return [self.resolve(branch, space) for branch in kind]
        type_ = kind["type"]
        if not isinstance(type_, str):  # {"type": {…}}
            return self.resolve(type_, space)
        if type_ in NAMED:
            return self._define(kind, space)
        if type_ == "array":
            return {**kind, "items": self.resolve(kind["items"], space)}
        if type_ == "map":
            return {**kind, "values": self.resolve(kind["values"], space)}
        return kind if type_ in PRIMITIVES else self._by_name(type_, space)

    def _by_name(self, name: str, space: str) -> Any:
        for full in (_full_name(name, space), name):
            if full in self._known:
                return self._known[full]
        raise DecodeError(NO_SCHEMA, "the Avro schema references a type that it does not define")

    def _define(self, kind: Mapping[str, Any], space: str) -> Any:
        full = _full_name(kind["name"], kind.get("namespace", space))
        self._known[full] = full
        definition = {name: value for name, value in kind.items() if name != "namespace"} | {"name": full}
        if "fields" in kind:
            inner = full.rpartition(".")[0]
            definition["fields"] = [{**field, "type": self.resolve(field["type"], inner)} for field in kind["fields"]]
        self._known[full] = definition
        return definition


def _full_name(name: str, space: str | None) -> str:
    return f"{space}.{name}" if space and "." not in name else name

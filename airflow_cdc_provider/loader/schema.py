"""The JSON Schema of the YAML, for editors, derived from the fields of the definition.

It covers single fields; only the loader checks relations between fields.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, format_duration
from airflow_cdc_provider.core.table.schema import DECIMAL
from airflow_cdc_provider.loader.text_formats import CASTS, DURATION, FORMS
from airflow_cdc_provider.loader.types import NEEDS, known_kinds, options_class

DIALECT = "http://json-schema.org/draft-07/schema#"
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    one_of = [{"required": ["target"]}, {"required": ["targets"]}]
    return {"$schema": DIALECT, "title": "Replicator", **_object(Definition), "oneOf": one_of}


def _object(kind: Any) -> dict[str, Any]:
    """A class with a type field becomes one variant per type."""
    members = {f.name: f for f in fields(kind)}
    inline = [name for name, f in members.items() if f.metadata.get("inline")]
    if not inline:
        return _closed((kind,), members, {})
    own = {name: f for name, f in members.items() if name not in inline}
    variants = list(_variants((kind,), own, {}))
    return variants[0] if len(variants) == 1 else {"oneOf": variants}


def _variants(
    kinds: tuple[Any, ...], members: Mapping[str, Field[Any]], chosen: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """One variant per type, or per combination of types if the options of a type have a type field, too."""
    undecided = [name for name, f in members.items() if "choices" in f.metadata and name not in chosen]
    if not undecided:
        yield _closed(kinds, members, chosen)
        return
    registry = members[undecided[0]].metadata["choices"]
    for name in known_kinds(registry):
        options = options_class(registry, name)
        option_fields = {f.name: f for f in fields(options)}
        yield from _variants((*kinds, options), {**members, **option_fields}, {**chosen, undecided[0]: name})


def _closed(kinds: tuple[Any, ...], members: Mapping[str, Field[Any]], chosen: Mapping[str, str]) -> dict[str, Any]:
    hints = {name: hint for kind in kinds for name, hint in typing.get_type_hints(kind).items()}
    properties = {name: _described(hints[name], member) for name, member in members.items()}
    for name, value in chosen.items():
        properties[name] = {"const": value, "description": members[name].metadata["doc"]}
    required = [name for name, member in members.items() if _required(member)]
    if kinds[0] is Source and all(getattr(kind, NEEDS, True) for kind in kinds[1:]):
        required.append("connection")
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _required(member: Field[Any]) -> bool:
    return member.default is MISSING and member.default_factory is MISSING


def _described(kind: Any, member: Field[Any]) -> dict[str, Any]:
    schema = {**_schema(kind, member.metadata), "description": member.metadata.get("doc", "")}
    if member.default is not MISSING and member.default not in ("", None):
        schema["default"] = yaml_default(member.default)
    return schema


def yaml_default(value: Any) -> Any:
    """A default value in the notation of the YAML."""
    return format_duration(value) if isinstance(value, timedelta) else to_plain(value)


def _schema(kind: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if mapping := next(filter(is_dataclass, arguments if origin is types.UnionType else ()), None):
        return _object(mapping)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema(member, more) for member in arguments]}
    if kind is types.NoneType:
        return {"type": "null"}
    if origin is tuple:
        least = {"minItems": 1} if more.get("non_empty") else {}
        return {"type": "array", "items": _schema(arguments[0], more), **least}
    if origin is dict and arguments[1] is int:
        return {"type": "object", "additionalProperties": _schema(int, more)}
    if origin is dict and more.get("form") == "cast":
        return {
            "type": "object",
            "additionalProperties": {"anyOf": [{"enum": CASTS}, {"pattern": f"^{DECIMAL.pattern}$"}]},
        }
    if origin is dict and more.get("form") == "column":
        return {"type": "object", "additionalProperties": _schema(str, more)}
    if origin is dict:
        return {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    if is_dataclass(kind):
        return _object(kind)
    if kind is timedelta:
        return {"type": "string", "pattern": DURATION}
    if issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    return {"type": TYPES[kind], **_bounds(kind, more)}


def _bounds(kind: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    form = FORMS.get(more.get("form", ""))
    if kind is str and form and form.pattern:
        return {"pattern": form.pattern}
    return {name: more[name] for name in ("minimum", "maximum") if name in more and kind in (int, float)}

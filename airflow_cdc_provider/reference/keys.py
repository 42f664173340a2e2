"""The table of the keys of the YAML, from the classes that read it."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.loader.schema import yaml_default
from airflow_cdc_provider.loader.types import known_kinds, options_class

SCALARS = (str, int, float, bool)
NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", timedelta: "duration"}


def key_table() -> str:
    """A Markdown table with one row per key of the YAML; nested keys have their path."""
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    return "\n".join([*lines, *_rows(Definition, "")])


def _rows(kind: Any, prefix: str) -> Iterator[str]:
    """A class with two keys at one level is listed below the first of them."""
    hints = typing.get_type_hints(kind)
    listed: set[Any] = set()
    for member in fields(kind):
        metadata, hint = member.metadata, hints[member.name]
        if metadata.get("inline"):
            yield from _option_rows(kind, prefix)
            continue
        path = f"{prefix}{member.name}"
        choices = known_kinds(metadata["choices"]) if "choices" in metadata else []
        value = ", ".join(f"`{choice}`" for choice in choices) or _value(hint)
        yield _row(path, value, member)
        if (inner := _mapping(hint)) not in listed:
            listed.add(inner)
            yield from _nested_rows(hint, path)


def _mapping(hint: Any) -> Any:
    """The class of a key with keys of its own, else None."""
    return next((a for a in (hint, *typing.get_args(hint)) if is_dataclass(a)), None)


def _nested_rows(hint: Any, path: str) -> Iterator[str]:
    inner = _mapping(hint)
    if inner is not None:
        yield from _rows(inner, f"{path}[]." if typing.get_origin(hint) is tuple else f"{path}.")


def _option_rows(kind: Any, prefix: str) -> Iterator[str]:
    registry = next(f.metadata["choices"] for f in fields(kind) if f.name == "type")
    nested_registries: dict[str, str] = {}
    for name in known_kinds(registry):
        for member in fields(options_class(registry, name)):
            nested_registries |= {member.metadata["choices"]: member.name} if "choices" in member.metadata else {}
        yield from _rows_of_type(registry, name, prefix, f"Type `{name}`: ")
    for inner, key in nested_registries.items():
        for name in known_kinds(inner):
            yield from _rows_of_type(inner, name, prefix, f"{key.capitalize()} `{name}`: ")


def _rows_of_type(registry: str, name: str, prefix: str, prefix_text: str) -> Iterator[str]:
    options = options_class(registry, name)
    hints = typing.get_type_hints(options)
    for member in fields(options):
        choices = known_kinds(member.metadata["choices"]) if "choices" in member.metadata else []
        value = ", ".join(f"`{choice}`" for choice in choices) or _value(hints[member.name])
        yield _row(f"{prefix}{member.name}", value, member, prefix_text)
        yield from _nested_rows(hints[member.name], f"{prefix}{member.name}")


def _row(path: str, value: str, member: Field[Any], prefix_text: str = "") -> str:
    text = prefix_text + str(member.metadata.get("doc", ""))
    return f"| `{path}` | {value} | {_default(member)} | {text.replace('|', chr(92) + '|')} |"


def _default(member: Field[Any]) -> str:
    if member.default is MISSING:
        return "**required**" if member.default_factory is MISSING else ""
    return "" if member.default in ("", None) else f"`{json.dumps(yaml_default(member.default)).strip(chr(34))}`"


def _value(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        kinds = [a for a in arguments if a is not types.NoneType]
        known = ["value" if set(SCALARS) <= set(kinds) and a in SCALARS else _value(a) for a in kinds]
        return " or ".join(dict.fromkeys(known))
    if origin is tuple:
        return "list of mappings" if is_dataclass(arguments[0]) else f"list of {_value(arguments[0])}s"
    if origin is dict or is_dataclass(hint):
        return "mapping"
    if issubclass(hint, StrEnum):
        return ", ".join(f"`{member.value}`" for member in hint)
    return NAMES[hint]

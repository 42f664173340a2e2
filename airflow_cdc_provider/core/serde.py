"""Conversion between frozen dataclasses and JSON-compatible values: the format of step files, results and control
records."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
SCALARS = frozenset({str, int, float, bool, types.NoneType})


def to_plain(value: Any) -> Any:
    """Dataclasses become dicts in field order, tuples lists, durations seconds, times ISO 8601 text."""
    if type(value) in SCALARS:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, StrEnum) else value


def from_plain(kind: type[T], value: Any) -> T:
    """Rebuild a ``kind`` from the output of ``to_plain``.

    Members without a field in ``kind`` are ignored: an older reader accepts a newer file of the same format.
    """
    return typing.cast(T, _build(kind, value))


def _build(kind: Any, value: Any) -> Any:
    if value is None or kind in SCALARS:
        return value
    origin, arguments = _shape(kind)
    if origin in (typing.Union, types.UnionType):
        return _build(_member(arguments, value), value)
    if origin in (tuple, list):
        return origin(_build(arguments[0], item) for item in value)
    if origin is not None and isinstance(value, dict):
        return {key: _build(arguments[1], item) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{name: _build(hints[name], item) for name, item in value.items() if name in hints})
    if kind is timedelta:
        return timedelta(seconds=value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    return value


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _shape(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return typing.get_origin(kind), typing.get_args(kind)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Field name -> type. Cached: resolving annotations is the most expensive part of a conversion."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _member(members: tuple[Any, ...], value: Any) -> Any:
    """The member of a union that a JSON value belongs to: the tuple for a list, the dataclass or mapping for a dict."""
    for member in members:
        shape = typing.get_origin(member) or member
        if isinstance(value, list) and shape in (tuple, list):
            return member
        if isinstance(value, dict) and (is_dataclass(member) or shape is dict):
            return member
    scalars = [m for m in members if m is not type(None) and typing.get_origin(m) is None and not is_dataclass(m)]
    return scalars[0] if len(scalars) == 1 else Any

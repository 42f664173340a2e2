"""Conversion between frozen dataclasses and JSON-compatible values: the format of step files, results and control
records."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, partial
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
    return typing.cast(T, _read(_reader(typing.cast(Any, kind)), value))


Reader = Callable[[Any], Any]
"""Of a value that is not null."""


def _read(reader: Reader | None, value: Any) -> Any:
    return value if reader is None or value is None else reader(value)


@cache
def _reader(kind: Any) -> Reader | None:
    """None where the JSON value is the value."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return lambda value: _read(_reader(_member(arguments, value.__class__)), value)
    if origin in (tuple, list):
        item_reader = _reader(arguments[0])
        return lambda items: origin(_read(item_reader, item) for item in items)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return partial(_read_mapping, _reader(arguments[1]))
    if kind is timedelta:
        return lambda seconds: timedelta(seconds=seconds)
    if kind is datetime:
        return datetime.fromisoformat
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(_read_members, kind)
    return kind if isinstance(kind, type) and issubclass(kind, StrEnum) else None


def _read_mapping(reader: Reader | None, value: Any) -> Any:
    """Another form of the field, as an earlier version wrote it, stays as it is."""
    return {key: _read(reader, item) for key, item in value.items()} if isinstance(value, dict) else value


def _read_members(kind: Any, members: Mapping[str, Any]) -> Any:
    readers = _readers(kind)
    return kind(**{name: _read(readers[name], item) for name, item in members.items() if name in readers})


@cache
def _readers(kind: type[Any]) -> dict[str, Reader | None]:
    """By the names of the fields."""
    hints = typing.get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in fields(kind)}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _member(members: tuple[Any, ...], found: type[Any]) -> Any:
    """The member of a union that a JSON value of this type belongs to: the tuple for a list, the dataclass or mapping
    for a dict."""
    for member in members:
        shape = typing.get_origin(member) or member
        if found is list and shape in (tuple, list):
            return member
        if found is dict and (is_dataclass(member) or shape is dict):
            return member
    scalars = [m for m in members if m is not type(None) and typing.get_origin(m) is None and not is_dataclass(m)]
    return scalars[0] if len(scalars) == 1 else Any

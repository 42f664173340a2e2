"""A message with one of its values changed, for each value in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.message import Message

Path = tuple[str | int, ...]
COARSE = {"ts_ms": ("ts_us", "ts_ns"), "ts_us": ("ts_ns",)}


def changed_values(message: Message) -> Iterator[tuple[Path, Message]]:
    """Values only: an embedded schema appears in the columns."""
    if message.value is None or message.value.startswith(b"Obj"):
        return
    value = json.loads(message.value)
    for path, old in _leaves(value, ()):
        if path[0] != "schema":
            yield path, message._replace(value=_with(value, path, _another(old)))


def is_implied_by_finer_time(path: Path, message: Message) -> bool:
    """Of the three times at which a connector read an event, the finest implies the others."""
    value = json.loads(message.value or b"null")
    if path[0] == "payload":
        value, path = value["payload"], path[1:]
    return len(path) == 1 and any(value.get(finer) is not None for finer in COARSE.get(str(path[0]), ()))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict | list) and value:
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(one, (*path, name))
    elif not isinstance(value, dict | list):
        yield path, value


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "another" if value is None else f"{value}1"


def _with(value: Any, path: Path, new: Any) -> bytes:
    changed = json.loads(json.dumps(value))
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = new
    return json.dumps(changed).encode()

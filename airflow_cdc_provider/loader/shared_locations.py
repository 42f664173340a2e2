"""Where the tables of a target are, judged by its keys."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.loader.types import location_keys


def shared_location_keys(first: Target, second: Target) -> list[str]:
    """The keys by which two targets have the same folder, catalog or schema; empty if they do not."""
    if first.type != second.type:
        return []
    keys = location_keys(first.type)
    if keys.scope and _normalized(first, keys.scope) != _normalized(second, keys.scope):
        return []
    shared = [
        key for key in keys.any_of if _normalized(first, key) and _normalized(first, key) == _normalized(second, key)
    ]
    return [key for key in (keys.scope, *shared) if key and _normalized(first, key)] if shared else []


def location_text(target: Target, key: str) -> str:
    """In words, by one of its location keys."""
    value = getattr(target, key, "") or target.options.get(key)
    return str(value) if key == "location" else f"{key} {value}"


def _normalized(target: Target, key: str) -> str:
    """The value of a location key, without differences in spelling that do not matter."""
    value = str(getattr(target, key, "") or target.options.get(key, ""))
    return value.lower() if key == "catalog" else value.rstrip("/")

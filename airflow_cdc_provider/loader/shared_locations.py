"""Where the tables of a target are, judged by its keys."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.loader.types import locations_of


def shared_location_keys(first: Target, second: Target) -> list[str]:
    """The keys by which two targets have the same folder, catalog or schema; empty if they do not."""
    if first.type != second.type:
        return []
    of_second = locations_of(second)
    return [key for parts in locations_of(first) if parts in of_second for key, _ in parts if _value(first, key)]


def location_text(target: Target, keys: list[str]) -> str:
    """In words, by the keys of its location, without the connection."""
    named = [key for key in keys if key != "connection"] or keys
    return ", ".join(_value(target, key) if key == "location" else f"{key} {_value(target, key)}" for key in named)


def _value(target: Target, key: str) -> str:
    """As the YAML has it."""
    return str(getattr(target, key, "") or target.options.get(key) or "")

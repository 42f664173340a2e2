"""Where the tables of a target are, judged by its keys."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.target_locations import may_be_equal
from airflow_cdc_provider.loader.types import locations_of


def shared_location_keys(first: Target, second: Target) -> list[str]:
    """The keys, of those that both have, by which two targets have or may have the same folder, catalog or schema;
    empty if they do not."""
    if first.type != second.type:
        return []
    of_second = locations_of(second)
    shared = [parts for parts in locations_of(first) if any(may_be_equal(parts, other) for other in of_second)]
    return [key for parts in shared for key, _ in parts if _value(first, key) and _value(second, key)]


def location_text(target: Target, keys: list[str]) -> str:
    """In words, by the keys of its location, without the connection."""
    named = [key for key in keys if key != "connection"] or keys
    return ", ".join(_value(target, key) if key == "location" else f"{key} {_value(target, key)}" for key in named)


def _value(target: Target, key: str) -> str:
    """As the YAML has it."""
    return str(getattr(target, key, "") or target.options.get(key) or "")

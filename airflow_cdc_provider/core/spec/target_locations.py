"""Where the tables of a target are, by the keys of its definition: the options class of a type gives the
parts of a target's location (``location_parts``), and targets of one type with equal parts share their tables."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target

LocationParts = tuple[tuple[str, str], ...]
"""Keys, the most telling ones first, each with its value in one spelling."""


def option_location(target: Target, *keys: str) -> LocationParts:
    """Of tables in the system of ``connection``, by options."""
    return (*((key, str(target.options.get(key) or "")) for key in keys), ("connection", target.connection))

"""Where the tables of a target are, by the keys of its definition: the options class of a type gives the
parts of a target's location (``location_parts``), and targets of one type with equal parts share their tables."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target

LocationParts = tuple[tuple[str, str | None], ...]
"""Keys, the most telling ones first, each with its value in one spelling; None for one that the
connection has."""


def option_location(target: Target, *keys: str) -> LocationParts:
    """Of tables in the system of ``connection``, by options."""
    return (*((key, target.options.get(key) or None) for key in keys), ("connection", target.connection))


def may_be_equal(one: LocationParts, other: LocationParts) -> bool:
    """Whether no part that both have differs."""
    same_keys = [key for key, _ in one] == [key for key, _ in other]
    return same_keys and all(
        first == second or None in (first, second) for (_, first), (_, second) in zip(one, other, strict=True)
    )

"""Where the tables of a target are, by the keys of its definition: the options class of a type gives the place of a
target (``place``), and targets of one type with equal places share their tables."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.definition import Target

Place = tuple[tuple[str, str], ...]
"""Keys, the most telling ones first, each with its value in one spelling."""


def option_place(target: Target, *keys: str) -> Place:
    """The place in the system of ``connection`` that options name."""
    return (*((key, str(target.options.get(key) or "")) for key in keys), ("connection", target.connection))

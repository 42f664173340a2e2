"""The types of source and target that are there, the options class of each, and how a target names its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from airflow_cdc_provider import connectors, targets

BUILT_IN = {
    "sources": connectors.OPTIONS,
    "formats": connectors.FORMAT_OPTIONS,
    "targets": targets.OPTIONS,
    "naming": targets.NAMING,
}
GROUPS = {
    "sources": "sources.options",
    "formats": "formats.options",
    "targets": "targets.options",
    "naming": "targets.naming",
}

NEEDS = "needs_connection"
"""What the options of a source say that can do without a connection: False."""

KEEPS_TEXTS = "keeps_texts"
"""What the options of a source say that can tell a value of any type as the source's own text: True."""


def known_kinds(registry: str) -> list[str]:
    """Names of the types in ``registry`` (``sources``, ``formats`` or ``targets``), sorted."""
    return sorted({*BUILT_IN[registry], *_outsiders(registry)})


def options_class(registry: str, kind: str) -> Any:
    """The dataclass of the keys that a type takes beside the common ones."""
    return _load(registry, kind)


def table_naming(kind: str) -> Callable[[str], str]:
    """The function that makes a target's table name from a source table's name."""
    return cast(Callable[[str], str], _load("naming", kind))


@dataclass(frozen=True)
class LocationKeys:
    """``any_of``: the common keys, of which one must say where a target of a type keeps its tables. ``within``: the key
    that says where inside of it, empty where there is none. Two targets hold the same tables where both are equal."""

    any_of: tuple[str, ...] = ("location", "catalog")
    within: str = ""

    @property
    def taken(self) -> frozenset[str]:
        """What lies in an object store is reached by a connection."""
        return frozenset({*self.any_of, self.within, *(("connection",) if "location" in self.any_of else ())})


def location_keys(kind: str) -> LocationKeys:
    """As the options of the type say it. One that says nothing keeps its tables in folders."""
    options = options_class("targets", kind)
    return LocationKeys(
        getattr(options, "places", LocationKeys.any_of), getattr(options, "within", LocationKeys.within)
    )


def _load(registry: str, kind: str) -> Any:
    if kind in BUILT_IN[registry]:
        module, _, name = BUILT_IN[registry][kind].partition(":")
        return getattr(import_module(module), name)
    return _outsiders(registry)[kind].load()


@cache
def _outsiders(registry: str) -> dict[str, EntryPoint]:
    """What other packages bring, by entry points of these groups. Looked up once: it reads the metadata of every
    installed package."""
    return {point.name: point for point in entry_points(group=f"airflow_cdc_provider.{GROUPS[registry]}")}

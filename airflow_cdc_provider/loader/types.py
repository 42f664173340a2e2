"""The source, format and target types, their options classes, and the table naming of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from airflow_cdc_provider import connectors, targets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.target_locations import LocationParts

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
"""Attribute of a source's options class: False if the source needs no connection."""

KEEPS_TEXTS = "keeps_texts"
"""Attribute of a source's options class: True if the source can deliver values of any type as its own text."""

HAS_EACH_CHANGE = "has_each_change"
"""Attribute of a source's options class: False if the source delivers rows as they are now, some of them again, and not
each change once."""

HOLDS_COPIES = "holds_copies"
"""Attribute of a source's options class: True if the stream of the source contains its tables from their first row
on."""


def known_kinds(registry: str) -> list[str]:
    """Names of the types in ``registry`` (``sources``, ``formats`` or ``targets``), sorted."""
    return sorted({*BUILT_IN[registry], *_external_types(registry)})


def options_class(registry: str, kind: str) -> Any:
    """The dataclass of the options of a type."""
    return _load(registry, kind)


def table_naming(kind: str) -> Callable[[str], str]:
    """The function that derives a target table name from a source table name."""
    return cast(Callable[[str], str], _load("naming", kind))


@dataclass(frozen=True)
class LocationKeys:
    """The keys that determine the location of a target's tables. ``any_of``: common keys, of which one is required.
    ``scope``: the common key of the catalog within, if any."""

    any_of: tuple[str, ...] = ("location", "catalog")
    scope: str = ""

    @property
    def allowed(self) -> frozenset[str]:
        """The allowed common keys. A location in an object store may require a connection."""
        return frozenset({*self.any_of, self.scope, *(("connection",) if "location" in self.any_of else ())})


def location_keys(kind: str) -> LocationKeys:
    """The attributes ``location_keys`` and ``scope_key`` of the options class; by default tables are in folders."""
    options = options_class("targets", kind)
    return LocationKeys(
        getattr(options, "location_keys", LocationKeys.any_of), getattr(options, "scope_key", LocationKeys.scope)
    )


def locations_of(target: Target) -> list[LocationParts]:
    """By the function ``location_parts`` of the options class; by default ``location`` is one, and ``catalog``."""
    parts_of = getattr(options_class("targets", target.type), "location_parts", None)
    given = {"location": target.location.rstrip("/"), "catalog": target.catalog.lower()}
    return [parts_of(target)] if parts_of else [((key, value),) for key, value in given.items() if value]


def table_parent(target: Target) -> tuple[str, ...]:
    """By the function ``table_parent`` of the options class; by default tables are directly in ``location``."""
    parent = getattr(options_class("targets", target.type), "table_parent", None)
    return parent(target) if parent else ()


def _load(registry: str, kind: str) -> Any:
    if kind in BUILT_IN[registry]:
        module, _, name = BUILT_IN[registry][kind].partition(":")
        return getattr(import_module(module), name)
    return _external_types(registry)[kind].load()


@cache
def _external_types(registry: str) -> dict[str, EntryPoint]:
    """Types of other packages, registered as entry points. Cached, because the lookup reads the metadata of all
    installed packages."""
    return {point.name: point for point in entry_points(group=f"airflow_cdc_provider.{GROUPS[registry]}")}

"""The types of source and target that are there, the options class of each, and how a target names its tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from airflow_cdc_provider import connectors, targets

BUILT_IN = {"sources": connectors.OPTIONS, "targets": targets.OPTIONS, "naming": targets.NAMING}


def known_kinds(registry: str) -> list[str]:
    """Names of the types in ``registry`` (``sources`` or ``targets``), sorted."""
    return sorted({*BUILT_IN[registry], *_outsiders(registry)})


def options_class(registry: str, kind: str) -> Any:
    """The dataclass of the keys that a type takes beside the common ones."""
    return _load(registry, kind)


def table_naming(kind: str) -> Callable[[str], str]:
    """The function that makes a target's table name from a source table's name."""
    return cast(Callable[[str], str], _load("naming", kind))


def target_places(kind: str) -> tuple[str, ...]:
    """The common keys, of which one must say where a target of this type keeps its tables. A type that says nothing
    keeps them in folders."""
    return cast(tuple[str, ...], getattr(options_class("targets", kind), "places", ("location", "catalog")))


def _load(registry: str, kind: str) -> Any:
    if kind in BUILT_IN[registry]:
        module, _, name = BUILT_IN[registry][kind].partition(":")
        return getattr(import_module(module), name)
    return _outsiders(registry)[kind].load()


@cache
def _outsiders(registry: str) -> dict[str, EntryPoint]:
    """What other packages bring, by entry points of these groups. Looked up once: it reads the metadata of every
    installed package."""
    group = {"sources": "sources.options", "targets": "targets.options", "naming": "targets.naming"}[registry]
    return {point.name: point for point in entry_points(group=f"airflow_cdc_provider.{group}")}

"""Registries of classes by type name. A class is imported on first use, and so are optional libraries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.core.nearest import did_you_mean


def load_class(what: str, kind: str, built_in: Mapping[str, str], group: str = "") -> Any:
    """``what`` is "source", "target", …; ``built_in`` maps types to ``module:Class``; the types of other packages are
    entry points of ``group``, by default that of the classes. Raises NotInstalled: ENV010 if a library that the type
    requires is missing, ENV013 if no package provides the type."""
    group = f"airflow_cdc_provider.{group or f'{what}s'}"
    try:
        if kind in built_in:
            module, _, name = built_in[kind].partition(":")
            return getattr(import_module(module), name)
        for entry_point in entry_points(group=group, name=kind):
            return entry_point.load()
    except ModuleNotFoundError as error:
        raise _not_installed(what, kind, error) from error
    known = sorted({*built_in, *entry_points(group=group).names})
    raise NotInstalled.of(
        "ENV013",
        f"there is no {what} type {kind}",
        where=f"entry points {group}",
        found=kind,
        allowed=", ".join(known),
        do=did_you_mean(kind, known) or "install the package that provides it, here and where the jobs run",
    )


def load_library(name: str, what: str, kind: str) -> Any:
    """A library that only this type of source or target requires. Raises NotInstalled (ENV010)."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise _not_installed(what, kind, error) from error


def _not_installed(what: str, kind: str, error: ModuleNotFoundError) -> NotInstalled:
    return NotInstalled.of(
        "ENV010",
        f"{what} type {kind} requires a package that is not installed",
        found=f"no package {error.name or error}",
        do=f"pip install 'airflow-cdc-provider[{kind}]'",
    )

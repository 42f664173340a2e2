"""From the name of a kind to the class that stands for it, imported when first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from airflow_cdc_provider.core.errors import NotInstalled, Problem
from airflow_cdc_provider.core.nearest import did_you_mean


def class_of(what: str, kind: str, ours: Mapping[str, str]) -> Any:
    """``what`` is "source", "target", …; ``ours`` names our own classes as ``module:Class``; a kind of another package
    is found by its entry point. Raises NotInstalled: ENV010 where the vendor's library is missing, ENV013 where
    nobody brings the kind."""
    try:
        if kind in ours:
            module, _, name = ours[kind].partition(":")
            return getattr(import_module(module), name)
        for found in entry_points(group=f"airflow_cdc_provider.{what}s", name=kind):
            return found.load()
    except ModuleNotFoundError as error:
        raise NotInstalled(
            Problem(
                "ENV010",
                f"{what} type {kind} needs a package that is not installed",
                found=error.name or str(error),
                do=f"pip install 'airflow-cdc-provider[{kind}]'",
            )
        ) from error
    known = sorted({*ours, *entry_points(group=f"airflow_cdc_provider.{what}s").names})
    raise NotInstalled(
        Problem(
            "ENV013",
            f"there is no {what} type {kind}",
            where=f"entry points airflow_cdc_provider.{what}s",
            found=kind,
            allowed=", ".join(known),
            do=did_you_mean(kind, known) or "install the package that brings it, here and where the jobs run",
        )
    )

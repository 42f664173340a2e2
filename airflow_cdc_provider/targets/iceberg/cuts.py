"""The published cut as namespace properties, one per table because catalogs limit values; all in one request."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.table.published_cut import Cut

PREFIX = "cdc.cut."


def write_cut(catalog: Any, namespace: str, cut: Cut) -> None:
    """Replace an older cut."""
    prefix = f"{PREFIX}{cut.replicator}."
    current = catalog.load_namespace_properties(namespace)
    if int(current.get(f"{prefix}window", 0)) > cut.window:
        return
    updates = {f"{prefix}window": str(cut.window), f"{prefix}at": cut.at}
    updates |= {f"{prefix}table.{table.target}": str(table.version) for table in cut.tables}
    removals = {name for name in current if name.startswith(prefix)} - updates.keys()
    catalog.update_namespace_properties(namespace, removals=removals or None, updates=updates)


def remove_cut(catalog: Any, namespace: str, replicator: str) -> None:
    current = catalog.load_namespace_properties(namespace)
    removals = {name for name in current if name.startswith(f"{PREFIX}{replicator}.")}
    if removals:
        catalog.update_namespace_properties(namespace, removals=removals)

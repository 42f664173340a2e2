"""The published cut as properties of the namespace: one per table, since catalogs keep values short, in one request."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.table.published_cut import Cut

PREFIX = "cdc.cut."


def write_cut(catalog: Any, namespace: str, cut: Cut) -> None:
    """Puts the cut in the place of an older one."""
    prefix = f"{PREFIX}{cut.replicator}."
    held = catalog.load_namespace_properties(namespace)
    if int(held.get(f"{prefix}window", 0)) > cut.window:
        return
    said = {f"{prefix}window": str(cut.window), f"{prefix}at": cut.at}
    said |= {f"{prefix}table.{table.target}": str(table.version) for table in cut.tables}
    gone = {name for name in held if name.startswith(prefix)} - said.keys()
    catalog.update_namespace_properties(namespace, removals=gone or None, updates=said)

"""Published cuts beside the tables: one small file per cut, named by its window, so that the newest sorts last."""

from __future__ import annotations

import json

from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.staging.store import Store

FOLDER = "_cdc_cuts"
KEPT_CUTS = 20
"""A reader that has listed the files may still read older ones."""


def write_cut(store: Store, cut: Cut) -> None:
    """``store`` is the target's location. A late write of an older cut sorts before newer ones and has no effect."""
    folder = f"{FOLDER}/{cut.replicator}"
    # Of copies that share a table, the one that was read last.
    versions = {one.target: one.version for one in sorted(cut.tables, key=lambda one: one.version or 0)}
    content = {
        "replicator": cut.replicator,
        "window": cut.window,
        "at": cut.at,
        "tables": versions,
    }
    store.write(f"{folder}/{cut.window:010d}.json", json.dumps(content, indent=1).encode())
    for name in store.names(folder)[:-KEPT_CUTS]:
        store.delete(f"{folder}/{name}")


def remove_cuts(store: Store, replicator: str) -> None:
    store.delete(f"{FOLDER}/{replicator}")

"""Published cuts beside the tables: one small file each, named by its window, so that the newest sorts last."""

from __future__ import annotations

import json

from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.staging.store import Store

FOLDER = "_cdc_cuts"
KEPT = 20
"""Readers that found a file may still be about to read it."""


def write_cut(store: Store, cut: Cut) -> None:
    """``store`` is the target's location. A cut that is older than one there goes behind it and changes nothing."""
    folder = f"{FOLDER}/{cut.replicator}"
    said = {
        "replicator": cut.replicator,
        "window": cut.window,
        "at": cut.at,
        "tables": {table.target: table.version for table in cut.tables},
    }
    store.write(f"{folder}/{cut.window:010d}.json", json.dumps(said, indent=1).encode())
    for name in store.names(folder)[:-KEPT]:
        store.delete(f"{folder}/{name}")

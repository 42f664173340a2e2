"""Obstacles that every target on Spark's SQL meets in the same way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX


def catalog_name(catalog: str) -> Iterator[Problem]:
    if catalog and not (1 <= len(catalog.split(".")) <= 2 and all(catalog.split("."))):
        yield Problem("TGT002", "catalog is not a name", "target.catalog", catalog, "schema or catalog.schema")


def folder_not_writable(folder: str) -> Iterator[Problem]:
    standing = nearest_folder(folder)
    if not os.access(standing, os.W_OK | os.X_OK):
        do = f"chown or chmod {standing} so that Airflow's and Spark's user may write"
        where = f"target.location {folder}"
        yield Problem("TGT003", "the target folder cannot be written", where, f"no permission on {standing}", do=do)


def in_the_definition(task: TableTask, engine: str) -> Iterator[Problem]:
    """What of a table and its rule cannot be held by ``engine``."""
    names = Counter(name.lower() for name in task.schema.names)
    twins = sorted(name for name, count in names.items() if count > 1)
    if twins:
        found, do = ", ".join(twins), "exclude one of each pair in tables.columns"
        yield Problem("TGT014", "column names differ only in case", task.table, found, f"{engine} ignores case", do)
    own = [column.name for column in task.schema.columns if not column.text_of]
    reserved = [name for name in own if name.lower().startswith(RESERVED_PREFIX)]
    if reserved:
        found, do = ", ".join(reserved), "exclude them in tables.columns"
        yield Problem("TGT015", f"column names starting {RESERVED_PREFIX} are ours", task.table, found, "", do)
    if not task.schema.key and task.rule.on_delete is OnDelete.SOFT:
        do = "give the table a key (tables.key), or use on_delete: hard"
        yield Problem("TGT016", "soft deletes need a key", task.table, "on_delete: soft, no key", "hard, ignore", do)
    unknown = [name for name in task.rule.cluster_by if name not in task.schema.names]
    if unknown:
        yield Problem(
            "TGT017", "cluster_by names no column", task.table, ", ".join(unknown), ", ".join(task.schema.names)
        )


def not_ours(place: str) -> Problem:
    do = "choose another tables.target, or drop the table; it is never overwritten"
    return Problem("TGT012", "the target table is not ours", place, "no commit of this replicator", "", do)


def nearest_folder(path: str | Path) -> Path:
    """The folder itself, or the one that it would be made in."""
    return Path(path) if Path(path).exists() else nearest_folder(Path(path).parent)

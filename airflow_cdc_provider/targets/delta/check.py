"""Every obstacle on the Delta side, found before a job starts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.places import ALLOWED, FOLDER, S3
from airflow_cdc_provider.core.selection import RESERVED_PREFIX
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.staging.places import open_store
from airflow_cdc_provider.staging.store import creates_exclusively
from airflow_cdc_provider.targets.delta.ddl import UNFENCEABLE_FEATURES

if TYPE_CHECKING:
    from airflow_cdc_provider.targets.delta.target import DeltaTarget


def check_tables(target: DeltaTarget, tables: Sequence[TableTask]) -> list[Problem]:
    place = list(_location(target))
    if place:
        return place
    return [problem for task in tables for problem in (*_definition(task), *_table(target, task))]


def _location(target: DeltaTarget) -> Iterator[Problem]:
    where = f"target.location {target.location}" if target.location else "target.location"
    if target.catalog and not 1 <= len([part for part in target.catalog.split(".") if part]) <= 2:
        yield Problem("TGT002", "catalog is not a name", "target.catalog", target.catalog, "schema or catalog.schema")
    if not target.location:
        yield Problem("TGT001", "a Delta target needs a location", where, "nothing", "a folder", "set target.location")
        return
    if target.place.scheme == S3:
        yield from _bucket(target, where)
        return
    if target.place.scheme != FOLDER or not target.location.startswith("/"):
        yield Problem("TGT001", "no Delta tables on this kind of storage", where, target.location, ALLOWED)
        return
    standing = _nearest_folder(Path(target.location))
    if not os.access(standing, os.W_OK | os.X_OK):
        do = f"chown or chmod {standing} so that Airflow's and Spark's user may write"
        yield Problem("TGT003", "the target folder cannot be written", where, f"no permission on {standing}", do=do)


def _bucket(target: DeltaTarget, where: str) -> Iterator[Problem]:
    """Reached, written, and by an endpoint that honours conditional writes: without them two writers could both commit
    the same version of a table."""
    try:
        if creates_exclusively(open_store(target.location, target.connection)):
            return
    except CdcError as error:
        yield from error.problems
        return
    do = "use a store that honours `If-None-Match: *`, as AWS does"
    yield Problem("TGT004", "the object store does not create objects exclusively", where, do=do)


def _nearest_folder(path: Path) -> Path:
    return path if path.exists() else _nearest_folder(path.parent)


def _definition(task: TableTask) -> Iterator[Problem]:
    names = Counter(name.lower() for name in task.schema.names)
    twins = sorted(name for name, count in names.items() if count > 1)
    if twins:
        found, do = ", ".join(twins), "exclude one of each pair in tables.columns"
        yield Problem("TGT014", "column names differ only in case", task.table, found, "Delta ignores case", do)
    reserved = [name for name in task.schema.names if name.lower().startswith(RESERVED_PREFIX)]
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


def _table(target: DeltaTarget, task: TableTask) -> Iterator[Problem]:
    path = target.locate(task.target)
    held = target.held(task.table, task.target)
    if not held.exists:
        if open_store(target.location, target.connection).names(task.target):
            do = "choose another tables.target, or move the folder away"
            yield Problem("TGT011", "the target folder holds something that is no Delta table", path, "files", "", do)
        return
    if held.token is None:
        do = "choose another tables.target, or drop the table; it is never overwritten"
        yield Problem("TGT012", "the target table is not ours", path, "no commit of this replicator", "", do)
        return
    opened = target.open(task.target)
    retention = "delta.setTransactionRetentionDuration"
    if retention in opened.metadata().configuration:
        do = f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{retention}')"
        yield Problem("TGT013", f"{retention} makes Delta forget which commits were ours", path, "set", "unset", do)
    features = UNFENCEABLE_FEATURES & set(opened.protocol().writer_features or ())
    if features:
        do = "ALTER TABLE … DROP FEATURE for each of them, or resync into a new table"
        yield Problem(
            "TGT018", "table features that a fence cannot be written under", path, ", ".join(features), "", do
        )

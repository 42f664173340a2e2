"""A full copy into a table that other copies share: it replaces the files with its own rows, and may add columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.copy import ReplacedVersion
from airflow_cdc_provider.targets.delta.local_engine.log_replay import ActiveFile, read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import TIMESTAMP_NTZ, require_writable
from airflow_cdc_provider.targets.needs_spark import NeedsSpark

WHOLE_TEXTS = 32
"""Longer texts may be cut in the statistics of a file."""


def own_version(store: Store, table: str, columns: Sequence[tuple[str, str]], own: OwnRows) -> ReplacedVersion:
    """``columns``: names and Delta types of the copy. Raises NeedsSpark, also where a file has rows of several
    copies."""
    snapshot = read_snapshot(store, table)
    require_writable(snapshot)
    schema = json.loads(snapshot.metadata["schemaString"])
    present = {field["name"].lower() for field in schema["fields"]}
    missing = [(name, kind) for name, kind in columns if name.lower() not in present]
    if TIMESTAMP_NTZ in dict(missing).values() and "timestampNtz" not in snapshot.protocol["writerFeatures"]:
        raise NeedsSpark("a table without the feature timestampNtz")
    schema["fields"] += [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in missing]
    metadata = {**snapshot.metadata, "schemaString": json.dumps(schema, ensure_ascii=False)}
    removed = tuple(file for file in snapshot.files if is_own(file, own))
    return ReplacedVersion(snapshot.version + 1, metadata, None, removed, snapshot.tokens)


def is_own(file: ActiveFile, own: OwnRows) -> bool:
    low, high = (_bound(file.stats.get(name), own) for name in ("minValues", "maxValues"))
    if low is None or high is None:
        raise NeedsSpark("files without statistics")
    if not low <= own.value <= high:
        return False
    if low == high == own.value and len(own.value) <= WHOLE_TEXTS:
        return True
    raise NeedsSpark("files with rows of several source tables")


def _bound(values: Mapping[str, str] | None, own: OwnRows) -> str | None:
    return (values or {}).get(own.column.name)

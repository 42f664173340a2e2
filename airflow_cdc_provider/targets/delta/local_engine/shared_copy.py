"""A full copy into a table that other copies share: it replaces the files with its own rows, and may add columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.copy import ReplacedVersion
from airflow_cdc_provider.targets.delta.local_engine.log_replay import read_snapshot
from airflow_cdc_provider.targets.delta.local_engine.own_files import own_files
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import TIMESTAMP_NTZ, require_writable
from airflow_cdc_provider.targets.needs_spark import NeedsSpark


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
    files = own_files(snapshot.files, own)
    if files.mixed:
        raise NeedsSpark("files with rows of several source tables, or without statistics")
    return ReplacedVersion(snapshot.version + 1, metadata, None, files.whole, snapshot.tokens)

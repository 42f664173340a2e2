"""Marks in staging of copies that are being dropped.

A mark lives from before the first part of a fenced copy is removed until the index says that the copy is dropped:
meanwhile a copy that cannot be read, or that the target does not have, is one that is dropped in part. It ends, too,
where the copy is read and is not being dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.log.change_log import DROPS, drop_mark_path, table_folder


def mark_copy(replicator: Replicator, table: str, identity: str) -> None:
    replicator.log.store.write(drop_mark_path(table), identity.encode())


def marked_copies(replicator: Replicator, tables: Collection[str]) -> Mapping[str, str]:
    """The identities of those copies that are marked, by one listing."""
    store = replicator.log.store
    marks = set(store.names(DROPS))
    return {table: store.read(drop_mark_path(table)).decode() for table in tables if table_folder(table) in marks}


def end_mark(replicator: Replicator, table: str) -> None:
    replicator.log.store.delete(drop_mark_path(table))

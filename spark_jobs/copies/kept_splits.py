"""Splits of a copy that were read, kept until it is committed. Two attempts may read the same split: the first one that
records its result wins, and the other uses that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_cdc_provider.connectors.copied.kept_copies import KeptSplit, kept_splits_folder
from airflow_cdc_provider.core.errors import Fenced, StagingInvalid
from airflow_cdc_provider.core.log.copy_progress import paused_path
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.staging.store import Store

DELTA, ROWS = "delta", "rows"
"""Kinds of results: files of a Delta table, or files in staging."""


def read_kept(store: Store, path: str, kind: type[Any]) -> Any:
    """None if there is no such file, or if it is damaged: nothing depends on it."""
    try:
        return kind.decode(store.read(path), path)
    except (FileNotFoundError, StagingInvalid):
        return None


@dataclass(frozen=True)
class KeepResults:
    """Where the results of splits are kept. ``is_whole``: whether what a result names still exists."""

    folder: str
    is_whole: Callable[[Any], bool]

    def find(self, store: Store, split: int) -> KeptSplit | None:
        found: KeptSplit | None = read_kept(store, self._path(split), KeptSplit)
        if found is not None and not self.is_whole(found.result):
            store.delete(self._path(split))
            return None
        return found

    def keep(self, store: Store, split: int, kept: KeptSplit) -> KeptSplit:
        """Returns the result that counts: that of the attempt that was first."""
        if store.create(self._path(split), kept.encode()):
            return kept
        return self.find(store, split) or kept

    def _path(self, split: int) -> str:
        return f"{self.folder}/{split:06d}.json"


def has_splits(store: Store, table: str, copy_id: str) -> bool:
    return any(store.names(kept_splits_folder(table, copy_id, kind)) for kind in (DELTA, ROWS))


def kept_rows(store: Store, table: str, copy_id: str) -> int:
    """The rows of all splits that are kept, of the kind with the most."""
    return max((_rows_in(store, kept_splits_folder(table, copy_id, kind)) for kind in (DELTA, ROWS)), default=0)


def _rows_in(store: Store, folder: str) -> int:
    found = (read_kept(store, f"{folder}/{name}", KeptSplit) for name in store.names(folder))
    return sum(split.rows for split in found if split is not None)


def require_not_paused(store: Store, replicator: str, table: str) -> None:
    """Raises Fenced (CPY020) if an operator has paused the first copy of the table."""
    if store.exists(paused_path(table)):
        raise Fenced.of(
            "CPY020",
            f"the copy of {table} is paused",
            where=table,
            found="a pause by an operator",
            do=f"airflow cdc resume {replicator} --table {in_shell(table)}",
            data="the target is unchanged; splits that were read are kept if the source can read them later",
        )


def write_rows(store: Store, path: str, rows: Iterable[pa.Table]) -> bool:
    """Writes a Parquet file, and returns whether there were any rows."""
    writer: pq.ParquetWriter | None = None
    with store.open_output(path) as output:
        for table in rows:
            writer = writer or pq.ParquetWriter(output, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is not None:
            writer.close()
    return writer is not None

"""What a merge changes in a table, as actions of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.local_engine.commit import removal
from airflow_cdc_provider.targets.delta.local_engine.data_file import with_vector, write_rows
from airflow_cdc_provider.targets.delta.local_engine.deletion_vectors import Positions, write_vectors
from airflow_cdc_provider.targets.delta.local_engine.key_lookup import KeyMatches
from airflow_cdc_provider.targets.delta.local_engine.log_replay import TableSnapshot
from airflow_cdc_provider.targets.delta.local_engine.protocol_support import columns_with_statistics

Action = Mapping[str, Any]


@dataclass(frozen=True)
class Changes:
    """``staged``: the number of staged rows. Rows ``updated`` include soft-deleted ones."""

    actions: tuple[Action, ...]
    staged: int
    inserted: int
    updated: int
    deleted: int

    @property
    def metrics(self) -> dict[str, int]:
        return {
            "numSourceRows": self.staged,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsDeleted": self.deleted,
            "numTargetFilesAdded": sum("add" in action for action in self.actions),
            "numTargetFilesRemoved": sum("remove" in action for action in self.actions),
        }


def marks(store: Store, table: str, marked: Sequence[tuple[KeyMatches, Positions]]) -> Iterator[Action]:
    """Rows of files that are marked deleted. A file without other rows is removed."""
    vectors = [np.union1d(match.marked, positions) for match, positions in marked]
    keeps_rows = [len(vector) < (match.file.rows or 0) for (match, _), vector in zip(marked, vectors, strict=True)]
    new_vectors = [vector for vector, keeps in zip(vectors, keeps_rows, strict=True) if keeps]
    descriptors = iter(write_vectors(store, table, new_vectors) if new_vectors else ())
    for (match, _), keeps in zip(marked, keeps_rows, strict=True):
        yield {"remove": removal(match.file)}
        if keeps:
            yield {"add": with_vector(dict(match.file.add), next(descriptors))}


def all_removed(snapshot: TableSnapshot) -> list[Action]:
    return [{"remove": removal(file)} for file in snapshot.files]


def added(store: Store, table: str, snapshot: TableSnapshot, rows: pa.Table) -> Iterator[Action]:
    """A new file with these rows."""
    if len(rows):
        yield {"add": write_rows(store, table, rows, columns_with_statistics(snapshot.metadata))}

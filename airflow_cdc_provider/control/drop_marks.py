"""Marks in staging of copies that are being dropped.

A mark lives from before the first part of a fenced copy is removed until the index says that the copy is dropped:
meanwhile the copy may be there in part, whether it can be read or not. It ends, too, where others have restored the
copy: it is not being dropped under a later fence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.log.change_log import DROPS, drop_mark_path, table_folder
from airflow_cdc_provider.core.table.states import drops_copy
from airflow_cdc_provider.targets.target import TargetState


@dataclass(frozen=True)
class DropMark:
    """``fence``: the fencing token under which the copy with this identity is dropped."""

    identity: str
    fence: int

    def is_of(self, current: TargetState) -> bool:
        """Whether parts of this copy may be gone. An earlier fence: the newest parts of its log are."""
        control = current.control
        if control is None:
            return True
        goes_on = control.fence <= self.fence or drops_copy(control.state)
        return current.identity == self.identity and goes_on


def mark_copy(replicator: Replicator, table: str, mark: DropMark) -> None:
    replicator.log.store.write(drop_mark_path(table), f"{mark.identity} {mark.fence}".encode())


def marked_copies(replicator: Replicator, tables: Collection[str]) -> Mapping[str, DropMark]:
    """By one listing."""
    store = replicator.log.store
    marks = set(store.names(DROPS))
    return {
        table: _parsed(store.read(drop_mark_path(table)).decode()) for table in tables if table_folder(table) in marks
    }


def _parsed(text: str) -> DropMark:
    identity, _, fence = text.partition(" ")
    return DropMark(identity, int(fence or 0))


def end_mark(replicator: Replicator, table: str) -> None:
    replicator.log.store.delete(drop_mark_path(table))

"""A full copy that was begun, in a file of staging: a later attempt continues it, and reads only the splits that are
missing.

    copies/<table>/COPY                     the copy: its anchor, its splits
    copies/<table>/<id>/<kind>/<split>.json the result of a split that was read, created exclusively
    copies/<table>/paused.json              an operator has paused it
    copies/<table>/progress.json            how far it is

``<kind>`` is how the rows are kept: as files of a Delta table (``delta``), or as files in staging (``rows``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.connectors.source import Copy
from airflow_cdc_provider.core.decisions.steps import Step, TableTask
from airflow_cdc_provider.core.log.change_log import SealedFile
from airflow_cdc_provider.core.log.copy_progress import copy_folder
from airflow_cdc_provider.core.table.copy_extent import CopyExtent
from airflow_cdc_provider.core.table.schema import TableSchema


@dataclass(frozen=True)
class CopyBasis:
    """What must be equal for a copy to be continued."""

    log_id: str
    epoch: int
    source_identity: Mapping[str, str]
    definition_sha256: str
    schema: TableSchema
    extent: CopyExtent


def basis_of(step: Step, task: TableTask) -> CopyBasis:
    extent = task.rule.snapshot.extent
    return CopyBasis(step.log_id, step.epoch, step.source_identity, task.definition_sha256, task.schema, extent)


@dataclass(frozen=True)
class KeptCopy(SealedFile):
    """``window``: the last one sealed before the anchor. ``began_at``: UTC in ISO 8601 format. ``continued``: another
    attempt has continued it, so its splits may be of several views of the table."""

    id: str
    began_at: str
    window: int
    basis: CopyBasis
    copy: Copy
    continued: bool = False

    def why_not_continued(self, basis: CopyBasis, now: Copy, oldest: int) -> str:
        """Empty if the copy can be continued. ``now``: a view of the table that was opened now. ``oldest``: the oldest
        window of the log."""
        if self.basis != basis:
            changed = [name for name in vars(basis) if getattr(self.basis, name) != getattr(basis, name)]
            return f"another {', '.join(changed)}"
        if self.copy.identity != now.identity or self.copy.schema != now.schema:
            return "the table has changed at the source"
        if not self.is_in(oldest):
            return f"the change log no longer has window {max(self.window, 1)}, which it needs from its anchor on"
        return ""

    def is_in(self, oldest: int) -> bool:
        """Whether a log that begins with the window ``oldest`` has all windows that the copy needs."""
        return max(self.window, 1) >= oldest


@dataclass(frozen=True)
class KeptSplit(SealedFile):
    """``result``: of writing the rows, JSON-able."""

    rows: int
    result: Any


def kept_copy_path(table: str) -> str:
    return f"{copy_folder(table)}/COPY"


def kept_splits_folder(table: str, copy_id: str, kind: str) -> str:
    return f"{copy_folder(table)}/{copy_id}/{kind}"

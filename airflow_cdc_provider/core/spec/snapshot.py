"""How full copies are made: which tables get one, and which rows it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_cdc_provider.core.spec.conditions import Condition
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.table.copy_extent import CopyExtent


class SnapshotMode(StrEnum):
    """``initial``: a first copy of all rows. ``schema_only``: an empty table; only changes bring rows.
    ``when_needed``: as ``initial``, and another copy, without an operator, where the changes cannot be continued."""

    INITIAL = "initial"
    SCHEMA_ONLY = "schema_only"
    WHEN_NEEDED = "when_needed"


@dataclass(frozen=True)
class SnapshotDefaults:
    mode: SnapshotMode = doc(
        "How a table starts. `initial`: with a copy of its rows. `schema_only`: empty, at the position of the source "
        "at its first run; only later changes bring rows. `when_needed`: as `initial`; besides, the table is copied "
        "again without an operator after a hole, a lost position, or if its target table is missing.",
        SnapshotMode.INITIAL,
    )


@dataclass(frozen=True)
class Snapshot:
    mode: SnapshotMode | None = doc("As `snapshot.mode` of the replicator.", None)
    where: tuple[Condition, ...] = doc(
        "Rows that full copies read: all conditions must be true, beside those of the table's `where`. Changes of "
        "other rows are applied, too.",
        tuple,
        form="filter",
    )

    def over(self, base: SnapshotDefaults) -> Snapshot:
        """These settings, with the values of ``base`` for keys that are absent."""
        return replace(self, mode=self.mode or base.mode)

    @property
    def extent(self) -> CopyExtent:
        """Of the copies that these settings make."""
        return CopyExtent(self.mode is not SnapshotMode.SCHEMA_ONLY, self.where)

"""How full copies are made: which tables get one, and which rows it reads."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from airflow_cdc_provider.core.spec.conditions import Condition
from airflow_cdc_provider.core.spec.fields import doc
from airflow_cdc_provider.core.spec.slices import Slices
from airflow_cdc_provider.core.table.copy_extent import CopyExtent

MAX_ROWS_PER_SECOND, MAX_PARALLEL = 1_000_000_000, 10_000


class SnapshotMode(StrEnum):
    """``initial``: a first copy of all rows. ``schema_only``: an empty table; only changes bring rows. ``never``: the
    same, or with the rows that a table in the target has already. ``when_needed``: as ``initial``, and another copy,
    without an operator, where the changes cannot be continued."""

    INITIAL = "initial"
    NEVER = "never"
    SCHEMA_ONLY = "schema_only"
    WHEN_NEEDED = "when_needed"


@dataclass(frozen=True)
class SnapshotDefaults:
    mode: SnapshotMode = doc(
        "How a table starts. `initial`: with a copy of its rows. `schema_only`: empty, at the position of the source "
        "at its first run; only later changes bring rows. `never`: as `schema_only`, but a table that the target has "
        "already is taken over with its rows. `when_needed`: as `initial`; besides, the table is copied again without "
        "an operator after a hole, a lost position, or if its target table is missing.",
        SnapshotMode.INITIAL,
    )
    max_rows_per_second: int | None = doc(
        "The most rows of a table that its copy reads from the source per second. Default: no limit.",
        None,
        minimum=1,
        maximum=MAX_ROWS_PER_SECOND,
    )
    parallel: int | None = doc(
        "The most splits of a table that its copy reads from the source at once. Default: as many as there are cores.",
        None,
        minimum=1,
        maximum=MAX_PARALLEL,
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
    max_rows_per_second: int | None = doc(
        "As `snapshot.max_rows_per_second` of the replicator.", None, minimum=1, maximum=MAX_ROWS_PER_SECOND
    )
    parallel: int | None = doc("As `snapshot.parallel` of the replicator.", None, minimum=1, maximum=MAX_PARALLEL)
    slices: Slices = doc("Parts of the table that `airflow backfill` copies again, one by one.", Slices)
    priority: int = doc("Tables with a higher number are copied first.", 0)

    def over(self, base: SnapshotDefaults) -> Snapshot:
        """These settings, with the values of ``base`` for keys that are absent."""
        given = {field.name: getattr(self, field.name) for field in fields(base)}
        return replace(self, **{k: getattr(base, k) if value is None else value for k, value in given.items()})

    def readers(self, splits: int, possible: int) -> int:
        """How many splits are read at once, if ``possible`` can be."""
        return max(1, min(splits, possible, self.parallel or possible))

    def rows_per_second(self, readers: int) -> float | None:
        """The limit of each reader; None if there is none."""
        return self.max_rows_per_second / readers if self.max_rows_per_second else None

    @property
    def extent(self) -> CopyExtent:
        """Of the copies that these settings make."""
        return CopyExtent(self.mode not in (SnapshotMode.SCHEMA_ONLY, SnapshotMode.NEVER), self.where)

    @property
    def takes_over(self) -> bool:
        """Whether a table that belongs to no replicator is taken over."""
        return self.mode is SnapshotMode.NEVER

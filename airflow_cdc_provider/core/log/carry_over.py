"""The carry-over: what a batch could not finish. The control record names it, so it changes in the batch's commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.log.change_log import DataFile


class Carried(StrEnum):
    """TOMBSTONE: the key was deleted; an older change must not restore it. QUARANTINED: a bad record that requires an
    operator's decision. DIRTY: a change whose row must be fetched from the source, which has not succeeded yet. PARKED:
    a later record of the same key, held until one of the former is resolved. FETCHED: the row was fetched from the
    source as of ``commit_ts``; changes committed earlier are superseded, up to window ``until``."""

    TOMBSTONE = "tombstone"
    QUARANTINED = "quarantined"
    DIRTY = "dirty"
    PARKED = "parked"
    FETCHED = "fetched"


WAITING = (Carried.QUARANTINED, Carried.DIRTY, Carried.PARKED)
"""Records that are not applied yet."""


@dataclass(frozen=True, order=True)
class Truncate:
    """``at``: its commit time, in microseconds since 1970; None if it is unknown."""

    order_key: str
    at: int | None


@dataclass(frozen=True)
class CarryOver:
    """``files``: change records with the additional columns ``kind``, ``since``, ``reason`` and ``until``. ``counts``:
    by kind. ``listing``: the records in quarantine (``core.log.quarantine.QuarantineList``). ``truncates``: those that
    happened while records of a history waited."""

    files: tuple[DataFile, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    listing: DataFile | None = None
    truncates: tuple[Truncate, ...] = ()

    @property
    def quarantined(self) -> int:
        return self.counts.get(Carried.QUARANTINED, 0)

    @property
    def dirty(self) -> int:
        return self.counts.get(Carried.DIRTY, 0)

    @property
    def parked(self) -> int:
        return self.counts.get(Carried.PARKED, 0)

    @property
    def fetched(self) -> int:
        return self.counts.get(Carried.FETCHED, 0)

    @property
    def waiting(self) -> int:
        """Records that are not applied yet."""
        return self.quarantined + self.dirty + self.parked


NOTHING = CarryOver()

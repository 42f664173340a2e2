"""What a batch could not finish. The control record hands it on to the next batch, so it changes in a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.log.change_log import DataFile


class Carried(StrEnum):
    """TOMBSTONE: the key is gone, and older news of it must not bring it back. QUARANTINED: a bad record, which an
    operator has to decide about. DIRTY: news of a row that only the source can tell, and it was not asked with success
    yet. PARKED: a good record of the same key that came behind one of these. FETCHED: the row was taken from the source
    as it was at ``commit_ts``; what was committed before that says nothing new, up to window ``until``."""

    TOMBSTONE = "tombstone"
    QUARANTINED = "quarantined"
    DIRTY = "dirty"
    PARKED = "parked"
    FETCHED = "fetched"


@dataclass(frozen=True)
class CarryOver:
    """``files`` of change records, each with the columns ``kind``, ``since``, ``reason`` and ``until`` beside its own.
    ``counts`` by kind. ``listing`` says which records are in quarantine (see ``core.quarantine``)."""

    files: tuple[DataFile, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    listing: DataFile | None = None

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

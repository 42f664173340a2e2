"""What a batch could not finish. The control record hands it on to the next batch, so it changes in a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.changelog import DataFile


class Carried(StrEnum):
    """TOMBSTONE: the key is gone, and older news of it must not bring it back. QUARANTINED: a bad record, which an
    operator has to decide about. PARKED: a good one of the same key that came behind it."""

    TOMBSTONE = "tombstone"
    QUARANTINED = "quarantined"
    PARKED = "parked"


@dataclass(frozen=True)
class CarryOver:
    """``files`` of change records, each with the columns ``kind``, ``since`` and ``reason`` beside its own. ``counts``
    by kind. ``listing`` says which records are in quarantine (see ``core.quarantine``)."""

    files: tuple[DataFile, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    listing: DataFile | None = None

    @property
    def quarantined(self) -> int:
        return self.counts.get(Carried.QUARANTINED, 0)

    @property
    def parked(self) -> int:
        return self.counts.get(Carried.PARKED, 0)


NOTHING = CarryOver()

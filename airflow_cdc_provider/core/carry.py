"""What a batch could not finish. The control record hands it on to the next batch, so it changes in a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.changelog import DataFile


class Carried(StrEnum):
    """TOMBSTONE: the key is gone, and older news of it must not bring it back. PARKED: an operator has to decide."""

    TOMBSTONE = "tombstone"
    PARKED = "parked"


@dataclass(frozen=True)
class CarryOver:
    """``files`` of change records, each with the columns ``kind``, ``since`` and ``reason`` beside its own. ``counts``
    by kind."""

    files: tuple[DataFile, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


NOTHING = CarryOver()

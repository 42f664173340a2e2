"""Scheduled comparisons, as the YAML has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from airflow_cdc_provider.core.spec.fields import doc


class OnDifference(StrEnum):
    """``off``: what differs is reported. ``ask``: an operator decides about the repair. ``on``: it is repaired."""

    OFF = "off"
    ASK = "ask"
    ON = "on"


@dataclass(frozen=True)
class Verify:
    every: timedelta | None = doc(
        "How often each copy is compared with its source; without it only `airflow cdc verify` compares.", None
    )
    repair: OnDifference = doc(
        "What happens to rows that differ: `off` reports them, `ask` waits for an operator's answer, `on` reads them "
        "from the source again and merges them.",
        OnDifference.OFF,
        needs="every",
    )
    sample: float = doc(
        "Fraction of a table's rows (0.001 to 1) that a scheduled comparison covers. The next one continues where it "
        "ended, so that all rows are compared in turns. Tables whose keys cannot be divided are compared as a whole.",
        1.0,
        minimum=0.001,
        maximum=1,
        needs="every",
    )

"""Which changes a copy has applied, by their order keys: a change at or below the highest of them is late. Pure.

The change log of the windows since the copy shows what became of the row of a late change. Windows that have been
removed from the log do not: ``forgotten`` is an upper limit of their order keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.log.positions import EPOCH_DIGITS

POSITION_DIGITS = 32
"""In the order keys of feeds, positions of the source have at least as many digits."""


@dataclass(frozen=True)
class Mark:
    """``newest``: the highest order key applied up to ``window``."""

    window: int
    newest: str


@dataclass(frozen=True)
class AppliedOrder:
    """``since``: the cursor of the copy, before any change was applied; None if that is unknown. ``newest``: the
    highest order key, empty if there was no change. ``marks``: earlier states, the oldest first, many recent ones and
    few old ones."""

    since: int | None = None
    newest: str = ""
    marks: tuple[Mark, ...] = ()

    def after(self, cursor: int, newest: str, oldest: int) -> AppliedOrder:
        """After a batch from ``cursor`` on, whose highest order key is ``newest``; empty for one without changes.
        ``oldest``: the oldest window of the log."""
        if not newest:
            return self
        marks = [mark for mark in self.marks if mark.window >= oldest - 1]
        if self.newest or self.since is not None:
            marks.append(Mark(cursor, self.newest))
        return replace(self, newest=max(self.newest, newest), marks=_thinned(marks))

    def before(self, order_key: str) -> int:
        """A window up to which no change with this order key or a higher one was applied."""
        return max(self.since or 0, *(mark.window for mark in self.marks if mark.newest < order_key), 0)

    def forgotten(self, oldest: int) -> str:
        """The log does not have all changes up to this order key; empty if it has all."""
        if oldest <= (self.since or 0) + 1:
            return ""
        return next((mark.newest for mark in self.marks if mark.window >= oldest - 1), self.newest)

    @property
    def orders_all(self) -> bool:
        """Whether order keys of different channels can be compared. Without positions of the source they have only the
        offsets of their messages."""
        position = self.newest[EPOCH_DIGITS : EPOCH_DIGITS + POSITION_DIGITS]
        return len(position) == POSITION_DIGITS and bool(position.strip("0"))


NOTHING_APPLIED = AppliedOrder()


def _thinned(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Of the marks whose ages have equally many binary digits, the oldest."""
    kept: dict[int, Mark] = {}
    for mark in marks:
        kept.setdefault((marks[-1].window - mark.window).bit_length(), mark)
    return tuple(kept.values())

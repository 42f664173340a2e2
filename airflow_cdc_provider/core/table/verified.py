"""The result of the last comparison of a table, in the index and in ``status``."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.table.questions import Question


@dataclass(frozen=True)
class Verified:
    """``at``: UTC in ISO 8601 format. ``window``: at whose end both sides were compared. ``differing``: keys that
    differed, ``more`` if there are others; ``repaired``: of them, equal since the repair; ``not_repaired``: why not.
    ``inexact``: the source changed meanwhile. ``sampled``: only some of the rows were compared, up to the key ``upto``,
    after which the next comparison begins; None: at the first one. ``question``: what an operator must decide."""

    at: str
    window: int
    identical: bool
    differing: int = 0
    more: bool = False
    repaired: int = 0
    not_repaired: str = ""
    inexact: bool = False
    sampled: bool = False
    upto: tuple[str, ...] | None = None
    question: Question | None = None

    @property
    def cured(self) -> bool:
        return self.identical or (self.repaired == self.differing and not self.more)

    @property
    def shown(self) -> str:
        """For ``status``."""
        found = "identical" if self.identical else f"{self.differing:,}{'+' if self.more else ''} differ"
        found += f", {self.repaired:,} repaired" if self.repaired else ""
        found += ", inexact" if self.inexact else ""
        return f"{self.at[:16]} {found}{', sample' if self.sampled else ''}"

"""What the model of the commit rule on Delta is made of: the table, the change log's names, and those at work."""

from __future__ import annotations

from typing import NamedTuple

from airflow_cdc_provider.core.table.control_record import split_token
from airflow_cdc_provider.core.table.states import TableState

ENDS = (0, 2, 4)
"""The last event of each window; window 0 is where the first copy stands."""
LAST = len(ENDS) - 1
SOMEBODY = 0

RUNNING, PAUSED, RESYNCING = TableState.REPLICATING, TableState.PAUSED, TableState.RESYNCING


class Record(NamedTuple):
    """A control record. ``by``: who is named in the change log; ``really``: who committed."""

    fence: int
    window: int
    floor: int
    state: TableState
    by: int
    really: int


class Batch(NamedTuple):
    fence: int
    floor: int
    lo: int
    hi: int


class Actor(NamedTuple):
    """``at``: the step done last. ``told``: the fence it was started under. ``version``: what its conditional commit is
    based on, with the ``record`` it saw there. ``number``: the fence a copy takes. ``out``: it was shut out."""

    kind: str
    at: str
    nonce: int = SOMEBODY
    told: int = 0
    batch: Batch | None = None
    record: Record | None = None
    version: int = 0
    number: int = 0
    token: int = 0
    effect: bool = False
    out: bool = False


class Names(NamedTuple):
    """Tokens named in the change log, and by whom."""

    by_token: tuple[tuple[int, int], ...]

    def owner(self, number: int) -> int | None:
        return dict(self.by_token).get(number)

    def add(self, number: int, who: int) -> Names:
        return Names(tuple(sorted({**dict(self.by_token), number: who}.items())))

    @property
    def highest_fence(self) -> int:
        return split_token(self.by_token[-1][0])[0]


class State(NamedTuple):
    """The table (recorded ``token``, ``record`` that counts, events in its ``data``), the ``actors`` at work on it, how
    many attempts began (``nonces``), what may still happen (``left``), and the first rule that was broken."""

    token: int
    record: Record
    data: tuple[int, ...]
    version: int
    restored: bool
    paused: bool
    names: Names
    actors: tuple[Actor, ...]
    nonces: int
    left: tuple[str, ...]
    broken: str


FIRST = Record(1, 0, 0, RUNNING, SOMEBODY, SOMEBODY)

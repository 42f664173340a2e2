"""The state of the model of the commit rule on Delta: the table, the names in the change log, and the actors."""

from __future__ import annotations

from typing import NamedTuple

from airflow_cdc_provider.core.table.control_record import split_token
from airflow_cdc_provider.core.table.states import TableState

ENDS = (0, 2, 4)
"""The last event of each window; window 0 is that of the first copy."""
LAST = len(ENDS) - 1
OTHER = 0

RUNNING, PAUSED, RESYNCING = TableState.REPLICATING, TableState.PAUSED, TableState.RESYNCING


class Record(NamedTuple):
    """A control record. ``attempt``: named in the change log; ``committed_by``: the attempt that committed."""

    fence: int
    window: int
    floor: int
    state: TableState
    attempt: int
    committed_by: int


class Batch(NamedTuple):
    fence: int
    floor: int
    lo: int
    hi: int


class Actor(NamedTuple):
    """``at``: the last step. ``start_fence``: the fence under which it started. ``version``: the base of its
    conditional commit, with the ``record`` of that version. ``number``: the fence of a copy. ``out``: it is shut
    out."""

    kind: str
    at: str
    nonce: int = OTHER
    start_fence: int = 0
    batch: Batch | None = None
    record: Record | None = None
    version: int = 0
    number: int = 0
    token: int = 0
    effect: bool = False
    out: bool = False


class Names(NamedTuple):
    """Tokens named in the change log, with the attempt that named each."""

    by_token: tuple[tuple[int, int], ...]

    def owner(self, number: int) -> int | None:
        return dict(self.by_token).get(number)

    def add(self, number: int, owner: int) -> Names:
        return Names(tuple(sorted({**dict(self.by_token), number: owner}.items())))

    @property
    def highest_fence(self) -> int:
        return split_token(self.by_token[-1][0])[0]


class State(NamedTuple):
    """The table (recorded ``token``, current ``record``, events in its ``data``), the ``actors``, the number of
    attempts begun (``nonces``), the events that may still happen (``left``), and the first broken rule."""

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


FIRST = Record(1, 0, 0, RUNNING, OTHER, OTHER)

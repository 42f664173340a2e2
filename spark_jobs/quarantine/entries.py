"""The row changes of a batch, as the separation of those that wait sees them: as a Spark frame or as an Arrow table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.windows.driver_reads import CarriedRecord

E = TypeVar("E")


class Mark(NamedTuple):
    """A position in the entries of a key."""

    k: str
    mark: str
    tx: str | None


class MarkContext(NamedTuple):
    """The surroundings of a mark, as order keys: where its key is ``settled`` after it, where the key is ``tied`` to
    another one after it, and where its transaction has ``begun``. None where there is no such position."""

    at: Mark
    settled: str | None
    tied: str | None
    begun: str | None

    @property
    def is_open(self) -> bool:
        return self.settled is None or (self.tied is not None and self.tied < self.settled)


class Span(NamedTuple):
    """The entries of a key after one order key and before another one, or its last one."""

    k: str
    after: str
    before: str | None


@dataclass(frozen=True)
class Split(Generic[E]):
    """``applied``: for the fold. ``waiting``: with their ``kind`` in the carry-over."""

    applied: E
    waiting: E


class Entries(Protocol):
    """Row changes with the columns of a carried record. ``kind`` is set for those that cannot be applied."""

    def of(self, records: Iterable[CarriedRecord]) -> Self:
        """Other entries of the same kind."""

    def union(self, other: Self) -> Self: ...

    def without(self, records: Iterable[RecordKey]) -> Self: ...

    def without_superseded(self, fetched: Sequence[ChangeRecord]) -> Self:
        """The entries that may be newer than rows fetched from the source. If a row did not exist, updates of some of
        its columns are dropped until the complete row arrives."""

    def without_fetched(self, fetched: Sequence[ChangeRecord]) -> Self:
        """Without those that the rows were fetched for, and earlier ones without their values; all others remain, as
        for a history. If a row did not exist, later updates are dropped as above."""

    def keys_with_rows(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that an entry has a complete row of."""

    def marked(self, moves: bool, ignore_deletes: bool) -> MarkedEntries[Self]:
        """``moves``: some rows move to another key without all their columns. ``ignore_deletes``: a delete does not
        settle a key."""

    def newly_parked(self, now: str) -> Self:
        """Those that are parked since ``now``."""

    def unrepresentable(self, images: ImageColumns, tables: TargetTables) -> dict[RecordKey, str]:
        """Those with a value that the target cannot represent, each with the reason."""


class MarkedEntries(Protocol[E]):
    """Entries that know where they settle a key, so that earlier ones do not matter, and where a key is tied to another
    one by a move without all columns."""

    def contexts(self, marks: Collection[Mark], doubly_held: bool) -> list[MarkContext]:
        """``doubly_held``: two rows may have one key within a transaction, so nothing in it settles the key."""

    def linked_halves(self, cuts: Mapping[str, str]) -> list[Mark]:
        """Halves of moves that do not wait although their other half does. ``cuts``: keys that wait, each with the
        order key from which it waits."""

    def without_updates_in(self, spans: Sequence[Span]) -> tuple[MarkedEntries[E], int]:
        """Without partial changes in these spans; also returns their number."""

    def split(self, cuts: Mapping[str, str], now: str) -> Split[E]:
        """``cuts`` as in ``linked_halves``. ``now``: ISO time, since when they wait."""

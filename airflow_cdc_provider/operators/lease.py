"""A lane held while a step runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from airflow_cdc_provider.core.decisions.attempts import COPIES
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CdcError, Fenced, Problem, StateUnavailable
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.state.store import StateStore

RENEW_EVERY_S = 60.0
AGAIN_S = 1.0
EXIT_S = 15.0
"""How long the end of the work waits for a call that is under way."""

log = logging.getLogger(__name__)


def lane_of(kind: StepKind) -> Lane:
    """Reconciling belongs to the copy lane: its tables take nothing from the stream meanwhile."""
    return Lane.COPY if kind in COPIES or kind is StepKind.REPLAY else Lane.STREAM


class RenewedLease:
    """Takes the lane on entry and renews it every minute. The lane is lost where another run took it, where the renewal
    fails for a reason that is not the state store's, and where no renewal has come back for as long as a lease lasts.
    Then ``lost`` says why, and ``on_lost`` is called again and again until the exit. The lane is not given back on
    exit: it belongs to the run, and close_window ends that.

    Raises Fenced (LSE001) on entry where another run holds the lane.
    """

    def __init__(self, store: StateStore, replicator: str, lane: Lane, run_id: str, on_lost: Callable[[], None]):
        self._store = store
        self._lease = (replicator, lane.value, run_id)
        self._on_lost = on_lost
        self._done = threading.Event()
        self._losing = threading.Lock()
        self._until = 0.0
        self._last = ""
        self._threads = [threading.Thread(target=one, name="lease", daemon=True) for one in (self._renew, self._watch)]
        self.lost: CdcError | None = None

    def __enter__(self) -> RenewedLease:
        self._until = time.monotonic() + LEASE_S
        if not self._store.acquire(*self._lease, LEASE_S):
            raise self._taken()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(EXIT_S)

    def require(self) -> None:
        """Raises what ``lost`` says."""
        if self.lost is not None:
            raise self.lost

    def _renew(self) -> None:
        while not self._done.wait(RENEW_EVERY_S):
            asked = time.monotonic()
            try:
                held = self._store.renew(*self._lease, LEASE_S)
                lost = None if held else self._gone()
            except StateUnavailable as error:
                log.warning("The lease could not be renewed, it is ours for %.0f s more: %s", self._left(), error)
                self._last = str(error)
                continue
            # Whatever it is: nobody would renew the lease from here on.
            except Exception as error:
                lost = self._not_renewed(f"{type(error).__name__} {error}")
            if lost is not None:
                self._lose(lost)
                return
            self._until = asked + LEASE_S

    def _watch(self) -> None:
        """Apart from the renewal: that may hang."""
        while (left := self._left()) > 0:
            if self._done.wait(left):
                return
        self._lose(self._not_renewed(self._last or f"no answer of the state store for {LEASE_S:.0f} s"))

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _lose(self, why: CdcError) -> None:
        with self._losing:
            if self.lost is not None:
                return
            self.lost = why
        log.error("The work ends: %s", why)
        while not self._done.is_set():
            self._on_lost()
            self._done.wait(AGAIN_S)

    def _gone(self) -> CdcError:
        replicator, lane, _ = self._lease
        return self._taken() if self._store.holder(replicator, lane) else self._not_renewed("it had run out")

    def _taken(self) -> Fenced:
        replicator, lane, run_id = self._lease
        return Fenced(
            Problem(
                "LSE001",
                f"another run holds the {lane} lane of {replicator}",
                where=f"run {run_id}",
                found=f"run {self._store.holder(replicator, lane) or 'unknown, already gone'}",
                data="nothing is lost: that run, or the next, goes on from the cursors of the target tables",
            )
        )

    def _not_renewed(self, found: str) -> StateUnavailable:
        replicator, lane, run_id = self._lease
        return StateUnavailable(
            Problem(
                "LSE002",
                f"the lease on the {lane} lane of {replicator} could not be renewed",
                where=f"run {run_id}",
                found=found,
                do="bring the state store back; a retry takes the lane again",
                data="nothing is lost: a retry, or the next run, goes on from the cursors of the target tables",
            )
        )

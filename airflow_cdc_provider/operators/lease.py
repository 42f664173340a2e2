"""Holds the lease of a lane while a step runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from airflow_cdc_provider.core.decisions.attempts import COPIES
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.core.errors import CdcError, Fenced, StateUnavailable
from airflow_cdc_provider.core.table.state_rows import LEASE_S, Lane
from airflow_cdc_provider.state.store import StateStore

RENEW_EVERY_S = 60.0
KILL_EVERY_S = 1.0
EXIT_S = 15.0
"""How long the exit waits for a running call."""

log = logging.getLogger(__name__)


def lane_of(kind: StepKind) -> Lane:
    """Reconciling belongs to the copy lane: its tables are out of the stream."""
    return Lane.COPY if kind in COPIES or kind is StepKind.REPLAY else Lane.STREAM


class RenewedLease:
    """Acquires the lease on entry and renews it every minute. The lease is lost if another run takes the lane, if the
    renewal fails with an unexpected error, or if no renewal succeeds within the duration of a lease. Then ``lost`` is
    the error, and ``on_lost`` is called every second until the exit. The lease is not released on exit: it belongs to
    the run, and close_window releases it.

    Raises Fenced (LSE001) on entry if another run holds the lane.
    """

    def __init__(self, store: StateStore, replicator: str, lane: Lane, run_id: str, on_lost: Callable[[], None]):
        self._store = store
        self._lease = (replicator, lane.value, run_id)
        self._on_lost = on_lost
        self._done = threading.Event()
        self._lost_lock = threading.Lock()
        self._valid_until = 0.0
        self._last_error = ""
        self._threads = [
            threading.Thread(target=target, name="lease", daemon=True) for target in (self._renew, self._watch)
        ]
        self.lost: CdcError | None = None

    def __enter__(self) -> RenewedLease:
        self._valid_until = time.monotonic() + LEASE_S
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
        """Raises ``lost`` if the lease is lost."""
        if self.lost is not None:
            raise self.lost

    def _renew(self) -> None:
        while not self._done.wait(RENEW_EVERY_S):
            requested_at = time.monotonic()
            try:
                renewed = self._store.renew(*self._lease, LEASE_S)
                lost = None if renewed else self._renewal_refused()
            except StateUnavailable as error:
                log.warning("Could not renew the lease, it expires in %.0f s: %s", self._seconds_left(), error)
                self._last_error = str(error)
                continue
            # Any error ends this thread, and no other thread renews the lease.
            except Exception as error:
                lost = self._not_renewed(f"{type(error).__name__} {error}")
            if lost is not None:
                self._lose(lost)
                return
            self._valid_until = requested_at + LEASE_S

    def _watch(self) -> None:
        """In a thread of its own, because a renewal may hang."""
        while (seconds_left := self._seconds_left()) > 0:
            if self._done.wait(seconds_left):
                return
        self._lose(self._not_renewed(self._last_error or f"no answer of the state store for {LEASE_S:.0f} s"))

    def _seconds_left(self) -> float:
        return self._valid_until - time.monotonic()

    def _lose(self, error: CdcError) -> None:
        with self._lost_lock:
            if self.lost is not None:
                return
            self.lost = error
        log.error("Lost the lease, stopping the step: %s", error)
        while not self._done.is_set():
            self._on_lost()
            self._done.wait(KILL_EVERY_S)

    def _renewal_refused(self) -> CdcError:
        replicator, lane, _ = self._lease
        return self._taken() if self._store.holder(replicator, lane) else self._not_renewed("the lease had expired")

    def _taken(self) -> Fenced:
        replicator, lane, run_id = self._lease
        return Fenced.of(
            "LSE001",
            f"another run holds the {lane} lane of {replicator}",
            where=f"run {run_id}",
            found=f"run {self._store.holder(replicator, lane) or 'unknown, already released'}",
            data="nothing is lost: that run or the next continues from the cursors of the target tables",
        )

    def _not_renewed(self, reason: str) -> StateUnavailable:
        replicator, lane, run_id = self._lease
        return StateUnavailable.of(
            "LSE002",
            f"the lease on the {lane} lane of {replicator} could not be renewed",
            where=f"run {run_id}",
            found=reason,
            do="restore the state store; a retry acquires the lane again",
            data="nothing is lost: a retry or the next run continues from the cursors of the target tables",
        )

"""A lane held while a step runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from airflow_cdc_provider.core.attempts import COPIES
from airflow_cdc_provider.core.errors import Fenced, Problem, StateUnavailable
from airflow_cdc_provider.core.index import LEASE_S, Lane
from airflow_cdc_provider.core.steps import StepKind
from airflow_cdc_provider.state.store import StateStore

RENEW_EVERY_S = 60.0

log = logging.getLogger(__name__)


def lane_of(kind: StepKind) -> Lane:
    """Reconciling belongs to the copy lane: its tables take nothing from the stream meanwhile."""
    return Lane.COPY if kind in COPIES or kind is StepKind.REPLAY else Lane.STREAM


class KeptLease:
    """Takes the lane on entry, renews it every minute, and calls ``on_lost`` once if another run took it. The lane is
    not given back on exit: it belongs to the run, and close_window ends that.

    Raises Fenced (LSE001) on entry where another run holds the lane.
    """

    def __init__(self, store: StateStore, replicator: str, lane: Lane, run_id: str, on_lost: Callable[[], None]):
        self._store = store
        self._lease = (replicator, lane.value, run_id)
        self._on_lost = on_lost
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self.lost = False

    def __enter__(self) -> KeptLease:
        if not self._store.acquire(*self._lease, LEASE_S):
            raise self.fenced()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def fenced(self) -> Fenced:
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

    def _renew(self) -> None:
        while not self._done.wait(RENEW_EVERY_S):
            try:
                held = self._store.renew(*self._lease, LEASE_S)
            except StateUnavailable as error:
                log.warning("The lease could not be renewed, it stays ours for up to %d s: %s", LEASE_S, error)
                continue
            if not held:
                self.lost = True
                self._on_lost()
                return

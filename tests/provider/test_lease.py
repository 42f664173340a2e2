"""A lease of a lane is renewed during the work, and the work ends when the lease is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import Fenced, StateUnavailable
from airflow_cdc_provider.operators import lease
from airflow_cdc_provider.operators.lease import RenewedLease
from airflow_cdc_provider.state.store import StateStore

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.05)
    monkeypatch.setattr(lease, "KILL_EVERY_S", 0.05)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(f"sqlite:///{tmp_path}/state.db")


def kept_lease(store: StateStore, ended: threading.Semaphore) -> RenewedLease:
    return RenewedLease(store, "shop", lease.Lane.STREAM, "run-1", ended.release)


def renewing(monkeypatch: pytest.MonkeyPatch, does: Callable[[], bool]) -> None:
    monkeypatch.setattr(StateStore, "renew", lambda *_: does())


def test_a_store_that_does_not_answer_ends_the_work_once_the_lease_has_run_out(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def does_not_answer() -> bool:
        raise StateUnavailable.of("STA010", "the state store cannot be used")

    monkeypatch.setattr(lease, "LEASE_S", 1.0)
    renewing(monkeypatch, does_not_answer)
    ended, began = threading.Semaphore(0), time.monotonic()
    with kept_lease(store, ended) as renewed:
        assert ended.acquire(timeout=PATIENCE_S)
        assert time.monotonic() - began >= 1.0, "until then the lease is valid"
    assert isinstance(renewed.lost, StateUnavailable) and renewed.lost.problems[0].code == "LSE002"
    assert "STA010" in str(renewed.lost)


def test_a_store_that_answers_again_in_time_does_not_end_the_work(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew, answers = store.renew, iter([False, False, True, False, True])

    def renew_or_fail(_: StateStore, replicator: str, lane: str, holder: str, ttl_s: float) -> bool:
        if not next(answers, True):
            raise StateUnavailable.of("STA010", "the state store cannot be used")
        return renew(replicator, lane, holder, ttl_s)

    monkeypatch.setattr(StateStore, "renew", renew_or_fail)
    with RenewedLease(store, "shop", lease.Lane.STREAM, "run-1", lambda: pytest.fail("the lane was lost")) as renewed:
        while next(answers, None) is not None:
            time.sleep(0.2)
    assert renewed.lost is None


def test_an_unexpected_error_of_the_renewal_ends_the_work_at_once(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies() -> bool:
        raise RuntimeError("dictionary changed size during iteration")

    renewing(monkeypatch, dies)
    ended = threading.Semaphore(0)
    with kept_lease(store, ended) as renewed:
        assert ended.acquire(timeout=PATIENCE_S)
    assert isinstance(renewed.lost, StateUnavailable) and "RuntimeError dictionary changed" in str(renewed.lost)


def test_a_renewal_that_hangs_ends_the_work_once_the_lease_has_run_out(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(lease, "LEASE_S", 1.0)
    renewing(monkeypatch, answer.wait)
    ended = threading.Semaphore(0)
    with kept_lease(store, ended) as renewed:
        assert ended.acquire(timeout=PATIENCE_S)
        answer.set()
    assert isinstance(renewed.lost, StateUnavailable)


def test_the_end_of_the_work_is_requested_until_it_ends(store: StateStore) -> None:
    """The work may be about to start the process that has to end."""
    ended = threading.Semaphore(0)
    with kept_lease(store, ended) as renewed:
        store.release("shop", lease.Lane.STREAM, "run-1")
        store.acquire("shop", lease.Lane.STREAM, "run-2", 60)
        for _ in range(3):
            assert ended.acquire(timeout=PATIENCE_S)
    assert isinstance(renewed.lost, (Fenced, StateUnavailable))
    assert store.holder("shop", lease.Lane.STREAM) == "run-2"


def test_the_run_that_has_the_lease_is_named(store: StateStore) -> None:
    store.acquire("shop", lease.Lane.STREAM, "run-2", 60)
    with pytest.raises(Fenced, match=r"LSE001.*run-2"), kept_lease(store, threading.Semaphore(0)):
        pytest.fail("the lane is taken")

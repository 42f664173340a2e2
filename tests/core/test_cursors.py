from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token, token
from airflow_cdc_provider.core.table.states import State, TableState

fences = st.integers(0, 2**31 - 1)
windows = st.integers(0, 2**32 - 1)

RECORD = ControlRecord(
    replicator="shop",
    table="public.a",
    log_id="l1",
    owner="o1",
    attempt="a1",
    fence=3,
    window=7,
    floor="f",
    state=State(TableState.REPLICATING, "2026-01-01T00:00:00Z"),
    nonce="n1",
)


@given(fences, windows)
def test_a_token_contains_its_fence_and_its_window(fence: int, window: int) -> None:
    assert split_token(token(fence, window)) == (fence, window)


@given(fences, windows, fences, windows)
def test_tokens_are_ordered_by_fence_and_then_by_window(f1: int, w1: int, f2: int, w2: int) -> None:
    assert (token(f1, w1) < token(f2, w2)) == ((f1, w1) < (f2, w2))


@given(fences, windows)
def test_a_token_fits_a_signed_64_bit_number(fence: int, window: int) -> None:
    assert 0 <= token(fence, window) < 2**63


@pytest.mark.parametrize(("fence", "window"), [(-1, 0), (0, -1), (2**31, 0), (0, 2**32)])
def test_numbers_out_of_range_are_refused(fence: int, window: int) -> None:
    with pytest.raises(ValueError, match=f"fence {fence}, window {window}"):
        token(fence, window)


def test_a_fence_commit_keeps_the_cursor_and_outranks_every_commit_under_the_old_fence() -> None:
    fenced = RECORD.fenced(State(TableState.PAUSED, "2026-01-02T00:00:00Z"), attempt="cli")
    assert (fenced.window, fenced.floor, fenced.log_id, fenced.owner) == (7, "f", "l1", "o1")
    assert (fenced.state.name, fenced.attempt) == (TableState.PAUSED, "cli")
    assert fenced.token > replace(RECORD, window=2**32 - 1).token


def test_two_fence_commits_of_one_record_differ_by_their_nonce() -> None:
    one, other = RECORD.fenced(), RECORD.fenced()
    assert one.token == other.token
    assert len({one.nonce, other.nonce, RECORD.nonce}) == 3
    assert one.state == RECORD.state


def test_tokens_of_a_growing_fence_never_repeat() -> None:
    made = [token(fence, window) for fence, window in itertools.product(range(50), range(50))]
    assert len(set(made)) == len(made) == len(sorted(set(made)))

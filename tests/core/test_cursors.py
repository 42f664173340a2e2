from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.cursors import ControlRecord, Cursor, split_token, token
from airflow_cdc_provider.core.states import State, TableState

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
    counts={"update": 4},
    nonce="n1",
)


@given(fences, windows)
def test_a_token_gives_back_its_fence_and_window(fence: int, window: int) -> None:
    assert split_token(token(fence, window)) == (fence, window)


@given(fences, windows, fences, windows)
def test_tokens_order_by_fence_first_then_window(f1: int, w1: int, f2: int, w2: int) -> None:
    assert (token(f1, w1) < token(f2, w2)) == ((f1, w1) < (f2, w2))


@given(fences, windows)
def test_a_token_fits_a_signed_64_bit_number(fence: int, window: int) -> None:
    assert 0 <= token(fence, window) < 2**63


@pytest.mark.parametrize(("fence", "window"), [(-1, 0), (0, -1), (2**31, 0), (0, 2**32)])
def test_what_does_not_fit_is_refused(fence: int, window: int) -> None:
    with pytest.raises(ValueError, match=f"fence {fence}, window {window}"):
        token(fence, window)


def test_a_fence_commit_keeps_the_place_and_outranks_every_commit_under_the_old_fence() -> None:
    fenced = RECORD.fenced(State(TableState.PAUSED, "2026-01-02T00:00:00Z"), attempt="cli")
    assert (fenced.window, fenced.floor, fenced.log_id, fenced.owner) == (7, "f", "l1", "o1")
    assert (fenced.state.name, fenced.attempt, fenced.counts) == (TableState.PAUSED, "cli", {})
    assert fenced.token > replace(RECORD, window=2**32 - 1).token


def test_two_fence_commits_of_one_record_differ_by_their_nonce() -> None:
    one, other = RECORD.fenced(), RECORD.fenced()
    assert one.token == other.token
    assert len({one.nonce, other.nonce, RECORD.nonce}) == 3
    assert one.state == RECORD.state


def test_a_cursor_covers_its_windows() -> None:
    cursor = Cursor(5, "f")
    assert [window for window in range(8) if cursor.covers(window)] == [0, 1, 2, 3, 4, 5]


# The commit rule, model-checked: every interleaving of attempts, kills, pauses and rewinds over three events.

Target = tuple[int, tuple[int, ...], bool]
"""Recorded token, events applied, paused."""


def _steps(rule: str) -> str | None:
    """Breadth-first over all states; the first violation found, or None.

    An attempt reads the target, plans the next window from it, and commits later, perhaps much later; five are planned
    in all. ``rule`` names
    what is left out: "" is the real one.
    """
    start = ((token(1, 0), (), False), (None, None, None), 5, 1, 1)
    seen, frontier = {start}, [start]
    while frontier:
        found = []
        for state in frontier:
            for following in _following(state, rule):
                violation = _violation(following[0])
                if violation:
                    return violation
                if following not in seen:
                    seen.add(following)
                    found.append(following)
        frontier = found
    return None


def _following(state, rule):  # type: ignore[no-untyped-def]
    (recorded, applied, paused), attempts, plans, pauses, rewinds = state
    fence, window = split_token(recorded)
    target = (recorded, applied, paused)
    for number, attempt in enumerate(attempts):
        if attempt is None and plans and not paused and window < 3:
            # Another attempt may be alive: it is shut out by a fence before we plan.
            others = any(attempts)
            planned = fence + 1 if others and rule != "no fence" else fence
            base = (token(planned, window), applied, paused)
            yield base, _with(attempts, number, (planned, window)), plans - 1, pauses, rewinds
        if attempt is not None:
            yield target, _with(attempts, number, None), plans, pauses, rewinds  # killed
            mine, lo = attempt
            if _accepted(recorded, paused, mine, lo, rule):
                done = (token(mine, lo + 1), (*applied, lo + 1), paused)
                yield done, _with(attempts, number, None), plans, pauses, rewinds
    if pauses and not paused:
        raised = fence if rule == "pause without fence" else fence + 1
        yield (token(raised, window), (*applied, 0), True), attempts, plans, pauses - 1, rewinds
    if rewinds and window and not paused:
        raised = fence if rule == "rewind without fence" else fence + 1
        yield (token(raised, 0), (), paused), attempts, plans, pauses, rewinds - 1


def _accepted(recorded: int, paused: bool, fence: int, lo: int, rule: str) -> bool:
    if rule == "window only":
        return split_token(recorded)[1] == lo
    return token(fence, lo + 1) > recorded and split_token(recorded)[0] == fence


def _with(attempts, number, value):  # type: ignore[no-untyped-def]
    return (*attempts[:number], value, *attempts[number + 1 :])


def _violation(target: Target) -> str | None:
    _, applied, _ = target
    data = [event for event in applied if event]
    if 0 in applied and applied[-1] != 0:
        return f"a commit after an acknowledged pause: {applied}"
    if data != list(range(1, len(data) + 1)):
        return f"lost or doubled: {applied}"
    return None


def test_no_interleaving_of_attempts_kills_pauses_and_rewinds_breaks_the_commit_rule() -> None:
    assert _steps("") is None


@pytest.mark.parametrize("rule", ["window only", "pause without fence", "rewind without fence"])
def test_the_model_finds_what_a_weaker_rule_breaks(rule: str) -> None:
    assert _steps(rule) is not None


def test_tokens_of_a_growing_fence_never_repeat() -> None:
    made = [token(fence, window) for fence, window in itertools.product(range(50), range(50))]
    assert len(set(made)) == len(made) == len(sorted(set(made)))

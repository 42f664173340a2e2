"""All interleavings of the commit rule: with every guard each invariant holds, and without any one guard some fails."""

from __future__ import annotations

import pytest

from tests.model import chunks, control_row, delta_commits, dirty_keys, published_cut, sealing
from tests.model.chunks import Chunks
from tests.model.control_row import ControlRow
from tests.model.delta_commits import DeltaCommits
from tests.model.dirty_keys import DirtyKeys
from tests.model.explore import Explored, Machine, explore
from tests.model.published_cut import PublishedCut
from tests.model.sealing import Sealing

PAUSE, TAKE_OVER, RESYNC, RESTORE = (
    ("pause", "take over"),
    ("take over", "pause", "resume"),
    ("resync", "copy", "resynced", "pause"),
    ("pause", "resume", "restore", "fence the restored"),
)
OPERATOR, TWO_AIRFLOWS = ("pause", "resume", "rewind"), ("take over",)
PAUSED = "a data commit to a paused table"
SHUT_OUT = "a commit of an attempt that was shut out"


@pytest.mark.parametrize(
    "machine",
    [
        DeltaCommits(3, TAKE_OVER),
        DeltaCommits(2, RESYNC),
        DeltaCommits(2, RESTORE),
        ControlRow(3, OPERATOR),
        ControlRow(3, TWO_AIRFLOWS),
        Sealing(),
        DirtyKeys(),
        Chunks(),
        PublishedCut(),
    ],
    ids=str,
)
def test_no_interleaving_breaks_an_invariant(machine: Machine[object]) -> None:
    explored = explore(machine)
    print(f"{machine}: {explored.states:,} states")
    assert not explored.wrong, f"\n{explored}"


D, R, S, K, C, P = (
    delta_commits.Guard,
    control_row.Guard,
    sealing.Guard,
    dirty_keys.Guard,
    chunks.Guard,
    published_cut.Guard,
)

WEAKENED = {
    D.FENCE_IN_THE_TOKEN: (DeltaCommits(2, PAUSE, D.FENCE_IN_THE_TOKEN), PAUSED),
    D.ONE_APP_ID: (DeltaCommits(2, PAUSE, D.ONE_APP_ID), PAUSED),
    D.FENCE_GROWS: (DeltaCommits(2, PAUSE, D.FENCE_GROWS), PAUSED),
    D.FENCE_IS_CONDITIONAL: (DeltaCommits(2, PAUSE, D.FENCE_IS_CONDITIONAL), "the cursor or the fence goes back"),
    D.FENCE_PASSES_ALL: (DeltaCommits(2, RESYNC, D.FENCE_PASSES_ALL), PAUSED),
    D.FENCE_HAS_ONE_OWNER: (DeltaCommits(2, RESYNC, D.FENCE_HAS_ONE_OWNER), PAUSED),
    D.TAKEOVER_FENCES: (DeltaCommits(2, (), D.TAKEOVER_FENCES), "holds the events (1, 2, 1, 2, 3, 4)"),
    D.BATCH_FITS_CURSOR: (DeltaCommits(2, (), D.BATCH_FITS_CURSOR), "holds the events (1, 2, 1, 2)"),
    D.BATCH_FITS_FENCE: (DeltaCommits(2, RESYNC, D.BATCH_FITS_FENCE), "holds the events (1, 2, 3, 3, 4)"),
    D.WORKS_UNDER_ITS_FENCE: (DeltaCommits(2, TAKE_OVER, D.WORKS_UNDER_ITS_FENCE), SHUT_OUT),
    D.TAKEN_NAME_FENCES: (
        DeltaCommits(2, (), D.TAKEN_NAME_FENCES),
        "names another attempt than the one that committed",
    ),
    D.READS_BACK: (DeltaCommits(2, PAUSE, D.READS_BACK), "reported as done, but never committed"),
    D.STATE_IN_THE_TABLE: (DeltaCommits(2, PAUSE, D.STATE_IN_THE_TABLE), PAUSED),
    D.RESTORE_IS_SEEN: (DeltaCommits(2, RESTORE, D.RESTORE_IS_SEEN), "holds the events ()"),
    D.COPY_COUNTS_FIRST: (DeltaCommits(2, RESYNC, D.COPY_COUNTS_FIRST), PAUSED),
    D.NO_RESTORE_MEANWHILE: (DeltaCommits(2, RESTORE, D.NO_RESTORE_MEANWHILE), "holds the events (3, 4)"),
    R.CURSOR_IN_THE_COMMIT: (ControlRow(3, OPERATOR, R.CURSOR_IN_THE_COMMIT), "holds the events (1, 1)"),
    R.FENCE_IN_THE_COMMIT: (ControlRow(3, OPERATOR, R.FENCE_IN_THE_COMMIT), PAUSED),
    R.CHECKED_WITHIN: (ControlRow(3, (), R.CHECKED_WITHIN), "holds the events (1, 1)"),
    R.CURSOR_WITH_DATA: (ControlRow(3, (), R.CURSOR_WITH_DATA), "an event is applied twice"),
    R.PAUSE_FENCES: (ControlRow(3, OPERATOR, R.PAUSE_FENCES), PAUSED),
    R.REWIND_FENCES: (ControlRow(3, OPERATOR, R.REWIND_FENCES), "rows from before the rewind"),
    R.WORKS_UNDER_ITS_FENCE: (
        ControlRow(3, TWO_AIRFLOWS, R.WORKS_UNDER_ITS_FENCE),
        "an Airflow that does not own the table",
    ),
    R.READS_BACK: (ControlRow(3, (), R.READS_BACK), "window 1 is acknowledged, the cursor of the table is 0"),
    R.UNKNOWN_DELETES_NOTHING: (ControlRow(3, (), R.UNKNOWN_DELETES_NOTHING), "refers to files that were deleted"),
    R.ACKNOWLEDGES_LAST: (
        ControlRow(3, (), R.ACKNOWLEDGES_LAST),
        "window 1 is acknowledged, the cursor of the table is 0",
    ),
    R.ONE_OWNER: (ControlRow(3, TWO_AIRFLOWS, R.ONE_OWNER), "an Airflow that does not own the table"),
    S.FIRST_SEAL_STANDS: (Sealing(S.FIRST_SEAL_STANDS), "a window changed after a table had applied it"),
    S.JOINS_ON: (Sealing(S.JOINS_ON), "the log holds the events (1, 1)"),
    S.ACKNOWLEDGES_SEALED: (Sealing(S.ACKNOWLEDGES_SEALED), "was acknowledged and is in no window"),
    S.LOST_IS_REPORTED: (Sealing(S.LOST_IS_REPORTED), "the log holds the events () up to 1"),
    K.GAP_MARKS: (DirtyKeys(K.GAP_MARKS), "counts as clean at event 2"),
    K.HOLDS: (DirtyKeys(K.HOLDS), "counts as clean at event 3"),
    K.SUPERSEDES: (DirtyKeys(K.SUPERSEDES), "the record goes back"),
    K.REMEMBERS: (DirtyKeys(K.REMEMBERS), "the record goes back"),
    K.ONE_COMMIT: (DirtyKeys(K.ONE_COMMIT), "counts as clean at event 2"),
    C.ANCHOR_FIRST: (Chunks(C.ANCHOR_FIRST), "published at event 1: (0, 0)"),
    C.ROWS_CARRY_THE_ANCHOR: (Chunks(C.ROWS_CARRY_THE_ANCHOR), "published at event 1: (0, 0)"),
    C.CHUNK_WITH_ROWS: (Chunks(C.CHUNK_WITH_ROWS), "published at event 0: (0, None)"),
    C.CATCHES_UP_FIRST: (Chunks(C.CATCHES_UP_FIRST), "published at event 0: (1, 0)"),
    P.SAME_WINDOW: (PublishedCut(P.SAME_WINDOW), "the reader sees window 1 beside window 2"),
    P.NAMES_VERSIONS: (PublishedCut(P.NAMES_VERSIONS), "the reader sees window 1 beside window 0"),
    P.KEEPS_VERSIONS: (PublishedCut(P.KEEPS_VERSIONS), "a version that the cut names is gone"),
    P.NEVER_BACK: (PublishedCut(P.NEVER_BACK), "the published cut goes back"),
}


@pytest.mark.parametrize("guard", WEAKENED, ids=lambda guard: f"{type(guard).__module__.split('.')[-1]}.{guard.name}")
def test_without_any_one_guard_an_invariant_breaks(guard: object) -> None:
    machine, expected = WEAKENED[guard]
    explored = explore(machine)
    print(f"without: {guard}\n{explored}")
    assert expected in explored.wrong
    assert explored.trace


def test_every_guard_is_removed_once() -> None:
    assert set(WEAKENED) == {guard for guards in (D, R, S, K, C, P) for guard in guards}


def test_a_counter_example_lists_its_steps_in_order() -> None:
    found = str(explore(DeltaCommits(1, ("pause",), D.FENCE_GROWS)))
    assert found.splitlines()[0].endswith("writer 1: begins")
    assert found.splitlines()[-1].endswith(PAUSED)
    assert str(Explored(3)) == "3 states, nothing wrong"

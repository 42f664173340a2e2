"""The window that a rewind goes to, and when it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.rewinds import reached_window, refusal, target_window
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.log.change_log import EXPIRED, DataFile, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState

NOW = ControlRecord(
    "shop", "public.t", "log", "me", "a", 3, 9, "f", State(TableState.REPLICATING, ""), definition_sha256="d"
)
COMMAND = Command("1", "shop", CommandKind.REWIND, (), {"to": "5"}, "k", "ann", "")


def window(number: int, committed: str | None, sealed: str = "2026-05-01T12:59:00+00:00") -> Manifest:
    return Manifest("log", number, 1, {}, {}, "", "a", sealed, {}, committed and "2026-05-01T00:00:00Z", committed)


LOG = [
    window(4, "2026-05-01T10:00:00Z"),
    window(5, "2026-05-01T11:00:00Z"),
    window(6, None, "2026-05-01T11:30:00+00:00"),
    window(7, "2026-05-01T12:00:00Z"),
]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("5", 5),
        ("0", 0),
        ("2026-05-01T11:00", 5),
        ("2026-05-01T13:00+02:00", 5),
        ("2026-05-01T11:59:59", 6),
        ("2026-05-02", 7),
        ("2026-04-01", 3),
    ],
)
def test_a_time_is_the_last_window_committed_by_then(to: str, expected: int) -> None:
    assert target_window(to, reversed(LOG)) == expected


@pytest.mark.parametrize("to", ["yesterday", "-1", "", "5.0", "2026-13-01"])
def test_another_text_is_refused(to: str) -> None:
    with pytest.raises(CommandRefused, match="CMD008"):
        target_window(to, LOG)


@pytest.mark.parametrize(
    ("wanted", "past", "oldest", "code"),
    [
        (10, NOW, 1, "CMD009"),
        (5, None, 1, "CMD010"),
        (5, replace(NOW, window=4), 6, "CMD011"),
        (5, replace(NOW, window=4, log_id="other"), 1, "CMD012"),
        (5, replace(NOW, window=4, definition_sha256="other"), 1, "CMD012"),
        (5, replace(NOW, window=4, source_identity={"system": "9"}), 1, "CMD012"),
    ],
)
def test_a_rewind_that_the_log_cannot_follow_is_refused(
    wanted: int, past: ControlRecord | None, oldest: int, code: str
) -> None:
    problem = refusal(COMMAND, NOW, wanted, NOW.window, past, oldest)
    assert problem is not None and problem.code == code


@pytest.mark.parametrize(("past", "oldest"), [(5, 1), (5, 6), (0, 0), (9, 10)])
def test_a_version_that_the_log_reaches_back_to_is_accepted(past: int, oldest: int) -> None:
    assert refusal(COMMAND, NOW, 9, 9, replace(NOW, window=past), oldest) is None


@pytest.mark.parametrize(
    ("later", "reached"),
    [([], 9), ([0, 0], 11), ([0, 3], 10), ([2], 9), ([None], 9)],
    ids=["no later window", "idle", "pending", "pending at once", "not captured"],
)
def test_a_table_has_reached_windows_without_its_records(later: list[int | None], reached: int) -> None:
    slices = [
        {} if rows is None else {"public.t": TableSlice("", files=(DataFile("f", rows, 1, ""),))} for rows in later
    ]
    manifests = [replace(window(10 + n, None), tables=tables) for n, tables in enumerate(slices)]
    assert reached_window(NOW, [*LOG, *reversed(manifests)]) == reached


def test_a_table_has_not_reached_a_window_with_its_hole() -> None:
    lost = replace(window(10, None), tables={"public.t": TableSlice("")}, holes=(Hole(EXPIRED, "public.t", ""),))
    assert reached_window(NOW, [lost]) == 9

from __future__ import annotations

import pytest

from airflow_cdc_provider.loader.schedules import runs_a_day


@pytest.mark.parametrize(
    ("schedule", "runs"),
    [
        (None, 0),
        ("* * * * *", 1_440),
        ("*/5 9-17 * * 1-5", 108),
        ("0 3 * * SAT", 1),
        ("@hourly", 24),
        ("@monthly", 1),
        ("30 4 29 2 *", 1),
    ],
)
def test_runs_are_those_of_the_busiest_day_of_a_week(schedule: str | None, runs: int) -> None:
    assert runs_a_day(schedule) == runs

"""The time zone of a server, compared with the one of the definition. SQL Server and Oracle only tell the present
offset of theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll import server_zone
from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.connectors.sources.jdbc_poll.server_zone import (
    ServerZone,
    is_other,
    is_refused,
    read_zone,
    zone_problem,
)

HOUR = timedelta(hours=1)
BERLIN = ServerZone("Europe/Berlin", HOUR, HOUR)
NEW_YORK = ServerZone("America/New_York", -5 * HOUR, -5 * HOUR)


IN_UTC = ServerZone("Etc/UTC", 0 * HOUR, 0 * HOUR)


def present(hours: int) -> ServerZone:
    return ServerZone("SYSTIMESTAMP", (hours - 1) * HOUR, hours * HOUR)


def options(time_zone: str | None) -> JdbcPollOptions:
    return JdbcPollOptions(driver="mssql+pyodbc", timestamp_column="u", time_zone=time_zone)


def test_the_remedy_never_names_the_offset_of_a_summer() -> None:
    problem = zone_problem(present(2), options(None), "dbo.t.u")
    assert '"+01:00"' in problem.do and "an hour more" in problem.do
    assert "+02:00" not in problem.do + problem.allowed and "(+02:00)" in problem.found
    assert "an hour more" not in zone_problem(BERLIN, options(None), "dbo.t.u").do


def test_the_remedy_keeps_an_offset_that_programs_of_a_server_in_utc_may_write() -> None:
    problem = zone_problem(IN_UTC, options("+02:00"), "dbo.t.u")
    assert "keep" in problem.do and "+02:00" in problem.do and "+00:00" in problem.do
    assert "programs" in problem.allowed and "never" not in problem.allowed
    assert "keep" not in zone_problem(BERLIN, options("+02:00"), "dbo.t.u").do


def test_a_session_asks_for_the_zone_of_its_server_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_zone, "ZONES", {"sqlite": "SELECT 'Etc/UTC', 0, 0"})
    engine, asked = sa.create_engine("sqlite://", poolclass=sa.NullPool), list[str]()
    sa.event.listen(engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    for sessions in (1, 2):
        with engine.connect() as connection:
            assert [read_zone(connection) for _ in range(20)] == [IN_UTC] * 20
        assert len(asked) == sessions, "a later session finds a zone that was changed"


@pytest.mark.parametrize(
    ("zone", "time_zone", "other", "refused"),
    [
        (present(1), "+01:00", False, False),  # winter
        (present(2), "+01:00", False, False),  # summer
        (present(2), "+02:00", False, False),
        (present(1), "+02:00", True, True),  # the clocks have gone back
        (present(2), "-05:00", True, False),  # rows arrive late
        (present(-4), "-03:30", True, True),
        (present(2), "UTC", False, False),
        (present(-5), "UTC", False, False),  # many programs write UTC
        (present(0), None, False, False),
        (IN_UTC, "+02:00", True, False),  # a server in UTC does not tell the zone of its programs
        (present(0), "+09:00", True, False),
        (IN_UTC, "-05:00", True, False),
        (present(1), None, True, False),  # the summer of UTC, or a zone that a run refuses in its summer
        (present(2), None, True, True),
        (present(-1), None, True, True),
        (BERLIN, "+01:00", False, False),
        (BERLIN, "+02:00", True, True),  # known by the name of the zone, also in summer
        (BERLIN, "+00:00", True, False),
        (BERLIN, None, True, True),
        (NEW_YORK, "-05:00", False, False),
        (NEW_YORK, "-04:00", True, True),
        (NEW_YORK, "UTC", False, False),
    ],
)
def test_a_run_refuses_an_offset_of_which_rows_would_be_missed_and_check_each_other_one(
    zone: ServerZone, time_zone: str | None, other: bool, refused: bool
) -> None:
    assert (is_other(zone, options(time_zone)), is_refused(zone, options(time_zone))) == (other, refused)

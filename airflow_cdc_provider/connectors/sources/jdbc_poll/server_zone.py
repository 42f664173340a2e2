"""The time zone of a server, compared with the one of the definition.

Timestamps without time zone are mostly written by the server's clock. Read as UTC, those of a zone west of it would
always be older than what was read last, so no row would ever arrive. A server in UTC says nothing about the zone of
the programs that write the timestamps, so their offset is believed if it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from airflow_cdc_provider.connectors.sources.jdbc_poll.options import JdbcPollOptions
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import Kind, TableSchema

MYSQL = """
SELECT @@global.time_zone, MIN(seconds), MAX(seconds) FROM (
  SELECT TIMESTAMPDIFF(SECOND, CONVERT_TZ(moment, @@global.time_zone, '+00:00'), moment) AS seconds FROM (
    SELECT UTC_TIMESTAMP() AS moment UNION ALL SELECT MAKEDATE(YEAR(UTC_TIMESTAMP()), 1)
    UNION ALL SELECT MAKEDATE(YEAR(UTC_TIMESTAMP()), 183)
  ) AS moments
) AS offsets
"""

ZONES: Mapping[str, str] = {
    "postgresql": """
SELECT zone.reset_val, min(seconds)::int, max(seconds)::int
FROM pg_settings zone
CROSS JOIN (VALUES (now()), (date_trunc('year', now())), (date_trunc('year', now()) + interval '6 months')) m (moment)
CROSS JOIN LATERAL (
  SELECT extract(epoch FROM (m.moment AT TIME ZONE zone.reset_val) - (m.moment AT TIME ZONE 'UTC'))
) AS offsets (seconds)
WHERE zone.name = 'TimeZone' GROUP BY zone.reset_val
""",
    "mysql": MYSQL,
    "mariadb": MYSQL,
    "mssql": "SELECT 'SYSDATETIMEOFFSET()', 60 * DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) - 3600, "
    "60 * DATEPART(TZOFFSET, SYSDATETIMEOFFSET())",
    "oracle": "SELECT 'SYSTIMESTAMP', 3600 * EXTRACT(TIMEZONE_HOUR FROM SYSTIMESTAMP) + "
    "60 * EXTRACT(TIMEZONE_MINUTE FROM SYSTIMESTAMP) - 3600, 3600 * EXTRACT(TIMEZONE_HOUR FROM SYSTIMESTAMP) + "
    "60 * EXTRACT(TIMEZONE_MINUTE FROM SYSTIMESTAMP) FROM DUAL",
}
"""Name, and the least and the greatest UTC offset of the year in seconds. PostgreSQL: what a session has by default,
because ours is in UTC. SQL Server and Oracle only tell the present offset, which may be that of a summer."""

ALLOWED = "the server's offset in winter; with a lesser one rows arrive late, with a greater one never"
ALLOWED_IN_UTC = (
    "the offset of the programs that write the timestamps; rows that the server writes arrive with +00:00 at once, "
    "with a lesser offset late, with a greater one not"
)

PRESENT_ONLY = frozenset({"mssql", "oracle"})

UTC = "UTC"


@dataclass(frozen=True)
class ServerZone:
    """The offset that the zone has in winter is at least ``least`` and at most ``most``; both are equal if the server
    has the name of its zone."""

    name: str
    least: timedelta
    most: timedelta


ASKED = "server_zone"


def read_zone(connection: sa.Connection) -> ServerZone | None:
    """None for a system without time zone. A session asks once."""
    if ASKED not in connection.info:
        connection.info[ASKED] = _ask_for_zone(connection)
    zone: ServerZone | None = connection.info[ASKED]
    return zone


def _ask_for_zone(connection: sa.Connection) -> ServerZone | None:
    system = connection.dialect.name
    if system not in ZONES:
        return None
    name, least, most = connection.exec_driver_sql(ZONES[system]).one()
    winter, now = timedelta(seconds=int(least)), timedelta(seconds=int(most))
    return ServerZone(str(name), winter, now if system in PRESENT_ONLY else winter)


def is_without_zone(schema: TableSchema, column: str) -> bool:
    return schema.column(column).type.kind is Kind.TIMESTAMP


def is_refused(zone: ServerZone, options: JdbcPollOptions) -> bool:
    """Whether a run refuses the table. With a greater offset than the server's, rows have older timestamps than what
    was read last, so they never arrive; with a lesser one they arrive late. Many programs write UTC in any zone, or
    local time with a server in UTC."""
    if options.time_zone is None:
        return not zone.least <= options.offset <= zone.most
    return options.time_zone != UTC and options.offset > zone.most and not _is_utc(zone)


def _is_utc(zone: ServerZone) -> bool:
    return zone.most == timedelta(0)


def is_other(zone: ServerZone, options: JdbcPollOptions) -> bool:
    """Whether `check` reports the zone: also one that a run may refuse in summer, and one in which rows arrive late."""
    if options.time_zone is None:
        return options.offset != zone.most
    return options.time_zone != UTC and not zone.least <= options.offset <= zone.most


def zone_problem(zone: ServerZone, options: JdbcPollOptions, where: str) -> Problem:
    """The remedy names the least offset, with which no row is lost, whatever the season. An offset that a run does not
    refuse may be that of the programs."""
    winter = "" if zone.least == zone.most else ", or an hour more if no daylight saving time is in force there now"
    return Problem(
        "SRC160",
        "the time zone of the server is not the one in which its timestamps are read",
        where=where,
        found=f"{zone.name} ({offset_text(zone.most)}) at the server; "
        f"`time_zone` {options.time_zone or 'is not set, so UTC'}",
        allowed=ALLOWED_IN_UTC if _is_utc(zone) else ALLOWED,
        do=_kept(options)
        if _is_utc(zone) and options.time_zone
        else f'time_zone: "{offset_text(zone.least)}" under '
        f"`source`{winter}; the zone of the programs that write the timestamps, if it is west of that; `UTC`, if they "
        "write UTC",
    )


def _kept(options: JdbcPollOptions) -> str:
    return (
        f"keep {options.time_zone}, if programs write the timestamps in that zone; "
        'time_zone: "+00:00" under `source`, if the server writes them'
    )


def offset_text(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"

"""The YAML keys of a source that polls SQL tables by a timestamp."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.fields import doc

OFFSET = re.compile(r"([+-])(0[0-9]|1[0-4]):([0-5][0-9])")


@dataclass(frozen=True, kw_only=True)
class JdbcPollOptions(PollingOptions):
    keeps_texts: ClassVar[bool] = True

    driver: str = doc(
        "SQLAlchemy's name of the system and its driver: `postgresql+psycopg`, `mysql+pymysql`, `mssql+pyodbc`, …"
    )
    timestamp_column: str = doc("Column with the time of a row's last change, in tables not in `timestamp_columns`.")
    schemas: tuple[str, ...] = doc(
        "Schemas whose tables can be copied; by default the default schema of a session.", tuple, non_empty=True
    )
    time_zone: str | None = doc(
        "Time zone of timestamps without time zone: `UTC` or an offset (`+02:00`); with daylight saving time, the "
        "offset of the winter. Without it they are in UTC, and a server with another time zone is refused.",
        None,
    )

    @staticmethod
    def option_conflicts(source: Source) -> Iterator[tuple[str, str, str, str, str]]:
        """Code, key, problem, found, allowed."""
        zone = source.options.get("time_zone", "UTC")
        if zone != "UTC" and not OFFSET.fullmatch(zone):
            allowed = "`UTC`, or an offset from `-14:59` to `+14:59`"
            yield "DEF053", "time_zone", "a time zone without fixed offset", str(zone), allowed

    @property
    def offset(self) -> timedelta:
        match = OFFSET.fullmatch(self.time_zone or "")
        if not match:
            return timedelta(0)
        length = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return length if match[1] == "+" else -length

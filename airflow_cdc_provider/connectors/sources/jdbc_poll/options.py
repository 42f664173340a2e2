"""The YAML keys of a source of SQL tables that are polled by a timestamp."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Source, doc

OFFSET = re.compile(r"([+-])(0[0-9]|1[0-4]):([0-5][0-9])")


@dataclass(frozen=True, kw_only=True)
class JdbcPollOptions(PollingOptions):
    keeps_texts: ClassVar[bool] = True

    driver: str = doc(
        "SQLAlchemy's name of the system and its driver: `postgresql+psycopg`, `mysql+pymysql`, `mssql+pyodbc`, …"
    )
    timestamp_column: str = doc("Column that tells when a row was changed last, in every table that names no other.")
    schemas: tuple[str, ...] = doc(
        "Schemas whose tables can be copied; by default the one that a session begins in.", tuple, filled=True
    )
    time_zone: str = doc(
        "What timestamps without zone are written in: `UTC` or an offset (`+02:00`); where clocks are set forward in "
        "summer, the offset of the winter.",
        "UTC",
    )

    @staticmethod
    def misfits(source: Source) -> Iterator[tuple[str, str, str, str, str]]:
        """Code, key, what is wrong with it, what was found, what is allowed."""
        zone = source.options.get("time_zone", "UTC")
        if zone != "UTC" and not OFFSET.fullmatch(zone):
            allowed = "`UTC`, or an offset from `-14:59` to `+14:59`"
            yield "DEF053", "time_zone", "a zone without fixed offset", str(zone), allowed

    @property
    def offset(self) -> timedelta:
        found = OFFSET.fullmatch(self.time_zone)
        if not found:
            return timedelta(0)
        length = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return length if found[1] == "+" else -length


def read_options(options: Mapping[str, Any]) -> JdbcPollOptions:
    return from_plain(JdbcPollOptions, dict(options))

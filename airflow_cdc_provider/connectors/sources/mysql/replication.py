"""The replication of a server that is itself a replica: its binlog is as old as what it has applied, and lacks that if
the server does not log it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import read_clock, read_variables
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable

STATEMENTS = ("SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
"""Of MariaDB, of MySQL since 8.0.22, and before."""

NAMES = {
    "channel": ("Connection_name", "Channel_Name"),
    "io": ("Slave_IO_Running", "Replica_IO_Running"),
    "sql": ("Slave_SQL_Running", "Replica_SQL_Running"),
    "behind": ("Seconds_Behind_Master", "Seconds_Behind_Source"),
    "io_error": ("Last_IO_Error",),
    "sql_error": ("Last_SQL_Error",),
}
LOGGED = ("log_slave_updates", "log_replica_updates")
APPLIED = "gtid_slave_pos"
"""A variable of MariaDB that everybody may read: empty on a server that has never replicated."""

OF_A_GROUP = "group_replication_"
"""Channels within a group of servers, each of which logs what it applies."""


@dataclass(frozen=True)
class Channel:
    """``behind_s``: None while it does not run."""

    name: str
    threads: str
    runs: bool
    behind_s: float | None
    error: str


def applied_until(connection: Any, address: str) -> datetime | None:
    """The time, by the clock of the server, up to which a late replica has applied its primary; None for other servers.
    Raises SourceUnavailable (SRC136) if it does not replicate: then that is unknown."""
    channels = find_channels(connection)
    if problems := list(stopped_problems(channels, address)):
        raise SourceUnavailable(*problems)
    behind_s = max((channel.behind_s or 0 for channel in channels), default=0)
    return read_clock(connection) - timedelta(seconds=behind_s) if behind_s else None


def require_logged(connection: Any, address: str, replicator: str) -> None:
    """Raises CheckFailed (SRC137) if the binlog lacks what the server replicates."""
    if problems := list(logging_problems(connection, address, replicator)):
        raise CheckFailed(*problems)


def find_channels(connection: Any) -> list[Channel]:
    """Empty for a server that is no replica, and where the login may not ask."""
    import pymysql

    for statement in STATEMENTS:
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                names = [column[0] for column in cursor.description]
                rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except pymysql.Error:
            continue  # another server's statement, or a missing privilege
        channels = [_channel(row) for row in rows]
        return [channel for channel in channels if not channel.name.startswith(OF_A_GROUP)]
    return []


def stopped_problems(channels: list[Channel], address: str) -> Iterator[Problem]:
    for channel in channels:
        if not channel.runs:
            yield Problem(
                "SRC136",
                "the server is a replica that does not replicate",
                address,
                f"{_named(channel)}: {channel.threads}{f': {channel.error}' if channel.error else ''}",
                "both threads run",
                "START REPLICA on the server, or repair what its error says; or read from the primary",
                "the copies have what the replica has applied",
            )


def logging_problems(connection: Any, address: str, replicator: str) -> Iterator[Problem]:
    variables = read_variables(connection, *LOGGED, APPLIED)
    found = next(((name, variables[name]) for name in LOGGED if name in variables), None)
    if found is not None and found[1] == "OFF" and (variables.get(APPLIED) or find_channels(connection)):
        name = found[0]
        yield Problem(
            "SRC137",
            "the server is a replica whose binlog lacks what it replicates",
            address,
            f"{name} = OFF",
            f"{name} = ON",
            f"{name} = ON under [mysqld] in the server's configuration, restart it, then airflow cdc resync"
            f" {replicator}; or read from the primary",
            "changes that the server replicated are not in the change log",
        )


def _channel(row: dict[str, Any]) -> Channel:
    io, sql = (str(_value(row, name)) for name in ("io", "sql"))
    behind = _value(row, "behind")
    return Channel(
        str(_value(row, "channel") or ""),
        f"I/O {io}, SQL {sql}",
        io == sql == "Yes",
        None if behind is None else float(behind),
        str(_value(row, "io_error") or _value(row, "sql_error") or ""),
    )


def _value(row: dict[str, Any], name: str) -> Any:
    return next((row[one] for one in NAMES[name] if one in row), None)


def _named(channel: Channel) -> str:
    return f"channel {channel.name}" if channel.name else "its channel"

"""All problems of a server and its tables at once, each with the statement that fixes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.binlog import read_events
from airflow_cdc_provider.connectors.sources.mysql.cascades import cascade_problems
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    BINLOG_RETENTION,
    ServerInfo,
    binlog_retention,
    fetch_all,
    read_binlog_end,
    read_binlog_files,
    read_server,
    read_tables,
    read_user,
    read_variables,
)
from airflow_cdc_provider.connectors.sources.mysql.check_tables import missing_table, table_problems
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient, error_details
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.connectors.sources.mysql.refused import refused_problems
from airflow_cdc_provider.connectors.sources.mysql.replication import find_channels, logging_problems, stopped_problems
from airflow_cdc_provider.connectors.sources.mysql.server_settings import REQUIRED, setting_problems
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem

__all__ = ["find_problems", "missing_table"]

MIN_VERSIONS = {"MySQL": (8, 0), "MariaDB": (10, 6)}
MIN_RETENTION = timedelta(days=3)
VARIABLES = ("log_bin", "server_id", *REQUIRED, *BINLOG_RETENTION)


def find_problems(client: MysqlClient, options: MysqlOptions, tasks: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable if the server cannot be reached; a rejected login is one of the problems."""
    try:
        with client.session("check") as connection:
            server = read_server(connection)
            variables = read_variables(connection, *VARIABLES)
            tables = read_tables(connection, options.databases)
            problems = [*_server_problems(server, variables, client)]
            problems += stopped_problems(find_channels(connection), client.address)
            problems += logging_problems(connection, client.address, client.replicator)
            problems += _server_id_problems(connection, variables, options, client)
            problems += _privilege_problems(connection, options, variables, client)
            problems += table_problems(tasks, tables, client.address, variables)
            problems += refused_problems(connection, client.address, tasks, tables)
            problems += cascade_problems(connection, tasks)
        return problems
    except CheckFailed as error:
        return list(error.problems)


def _server_problems(server: ServerInfo, variables: Mapping[str, str], client: MysqlClient) -> Iterator[Problem]:
    kind = "MariaDB" if server.is_mariadb else "MySQL"
    version = tuple(int(part) for part in server.version.split("-")[0].split(".")[:2])
    if version < MIN_VERSIONS[kind]:
        allowed = ", ".join(f"{name} {'.'.join(map(str, oldest))}" for name, oldest in MIN_VERSIONS.items())
        found = server.version
        yield Problem("SRC012", "the server is too old", client.address, found, f"{allowed} or later", "upgrade")
    if variables.get("log_bin") != "ON":
        do = "log_bin = binlog under [mysqld] in the server's configuration; then restart the server"
        yield Problem("SRC090", "the server writes no binlog", client.address, "log_bin = OFF", "log_bin = ON", do)
        return
    yield from setting_problems(variables, REQUIRED, client.address)
    yield from _retention_problems(variables, client)


def _retention_problems(variables: Mapping[str, str], client: MysqlClient) -> Iterator[Problem]:
    retention = binlog_retention(variables)
    if retention is not None and retention < MIN_RETENTION:
        yield Problem(
            "SRC096",
            "the binlog is retained for a short time: changes not read by then are lost, and tables are copied again",
            client.address,
            f"{retention / timedelta(days=1):.1f} days",
            f"{MIN_RETENTION.days} days or more",
            f"SET GLOBAL binlog_expire_logs_seconds = {7 * 86400}; and the same in the server's configuration",
        )


def _server_id_problems(
    connection: Any, variables: Mapping[str, str], options: MysqlOptions, client: MysqlClient
) -> Iterator[Problem]:
    """The server disconnects a replica when another one connects with its server_id."""
    import pymysql

    taken = {int(variables.get("server_id", 0)): "the server itself"}
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            taken |= {
                int(row[0]): f"a replica on {row[1] or 'a host without name'}"
                for row in fetch_all(connection, statement)
            }
            break
        except pymysql.Error:
            continue  # the other server's syntax, or a missing privilege, which another check reports
    for number in (options.server_id, options.server_id + 1):
        if number in taken:
            yield Problem(
                "SRC097",
                "the server_id of this replicator is in use",
                client.address,
                f"server_id {number}: {taken[number]}",
                f"two unused numbers: {options.server_id} to read changes, {options.server_id + 1} to look for them",
                "set `server_id` under `source` to a number that no server or replica has; the next one must be free, "
                "too",
            )


def _privilege_problems(
    connection: Any, options: MysqlOptions, variables: Mapping[str, str], client: MysqlClient
) -> Iterator[Problem]:
    if variables.get("log_bin") != "ON":
        return
    user = read_user(connection)
    denied = _denial(lambda: (read_binlog_files(connection), read_binlog_end(connection, client)))
    if denied:
        yield _missing_privilege("REPLICATION CLIENT", denied, user, client)
        return
    end = read_binlog_end(connection, client)
    with client.session("check") as other:
        denied = _denial(lambda: next(read_events(other, options.server_id + 1, end.file, end.pos), None))
    if denied:
        yield _missing_privilege("REPLICATION SLAVE", denied, user, client)


def _denial(action: Callable[[], object]) -> str:
    """The server's message if it denies the action for lack of a privilege, else empty."""
    import pymysql

    try:
        action()
    except pymysql.OperationalError as error:
        code, text = error_details(error)
        if code not in (1045, 1227):
            raise
        return text
    return ""


def _missing_privilege(privilege: str, found: str, user: str, client: MysqlClient) -> Problem:
    do = f"GRANT {privilege} ON *.* TO {user};"
    return Problem(
        "SRC011", f"login {user} lacks {privilege}, which reading the stream requires", client.address, found, do=do
    )

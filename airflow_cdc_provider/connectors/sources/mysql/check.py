"""Every obstacle at once, each with the statement that cures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.binlog import events
from airflow_cdc_provider.connectors.sources.mysql.cascades import cascade_problems
from airflow_cdc_provider.connectors.sources.mysql.catalog import (
    CatalogTable,
    ServerFacts,
    ask,
    read_end,
    read_files,
    read_server,
    read_tables,
    variables,
)
from airflow_cdc_provider.connectors.sources.mysql.check_tables import no_table, table_problems
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient, said
from airflow_cdc_provider.connectors.sources.mysql.options import MysqlOptions
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem

__all__ = ["find_problems", "no_table"]

OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6)}
LEAST_RETENTION_S = 3 * 86400
VARIABLES = (
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_transaction_compression",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    "mysql56_temporal_format",
    "gtid_mode",
    "server_id",
)

# Variable -> code, value it must have, what is wrong otherwise. A server that does not know it has no such trouble.
WANTED: Mapping[str, tuple[str, str, str]] = {
    "binlog_format": ("SRC091", "ROW", "the binlog tells statements instead of rows"),
    "binlog_row_image": (
        "SRC092",
        "FULL",
        "the binlog leaves out columns: of a new row those that got their defaults, so that its values are not known",
    ),
    "binlog_row_metadata": (
        "SRC093",
        "FULL",
        "the binlog tells no names of columns: where a table is altered, it must be copied again",
    ),
    "binlog_row_value_options": ("SRC094", "", "the binlog tells JSON documents as differences"),
    "binlog_transaction_compression": ("SRC094", "OFF", "the binlog holds compressed transactions, which are not read"),
    "mysql56_temporal_format": ("SRC094", "ON", "the binlog does not tell how times are written"),
    "gtid_mode": (
        "SRC095",
        "ON",
        "without GTIDs nobody can tell that the binlog was reset, nor what a copy sees of a commit that is under way",
    ),
}
CURES = {
    "gtid_mode": "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = OFF_PERMISSIVE; "
    "SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON;",
}


def find_problems(client: MysqlClient, options: MysqlOptions, tasks: Sequence[TableTask]) -> list[Problem]:
    """Raises SourceUnavailable where the server cannot be reached; a refused login is one of the problems."""
    try:
        with client.session("check") as connection:
            server = read_server(connection)
            told = variables(connection, *VARIABLES)
            found = read_tables(connection, options.databases)
            problems = [*_server(server, told, client), *_server_id(connection, told, options, client)]
            problems += _rights(connection, options, told, client)
            refused, user = _refused(connection, tasks, found), _current_user(connection)
            problems += table_problems(tasks, found, refused, user, client.place, told)
            problems += cascade_problems(connection, tasks)
        return problems
    except CheckFailed as error:
        return list(error.problems)


def _server(server: ServerFacts, told: Mapping[str, str], client: MysqlClient) -> Iterator[Problem]:
    kind = "MariaDB" if server.is_mariadb else "MySQL"
    numbers = tuple(int(part) for part in server.version.split("-")[0].split(".")[:2])
    if numbers < OLDEST[kind]:
        allowed = ", ".join(f"{name} {'.'.join(map(str, oldest))}" for name, oldest in OLDEST.items())
        yield Problem("SRC012", "the server is too old", client.place, server.version, f"{allowed} or later", "upgrade")
    if told.get("log_bin") != "ON":
        do = "log_bin = binlog under [mysqld] in the server's configuration; then restart the server"
        yield Problem("SRC090", "the server writes no binlog", client.place, "log_bin = OFF", "log_bin = ON", do)
        return
    for name, (code, wanted, what) in WANTED.items():
        if name in told and told[name].upper() != wanted:
            do = CURES.get(name, f"SET GLOBAL {name} = '{wanted}';") + " and the same in the server's configuration"
            yield Problem(code, what, client.place, f"{name} = {told[name]}", f"{name} = {wanted or 'empty'}", do)
    yield from _retention(told, client)


def _retention(told: Mapping[str, str], client: MysqlClient) -> Iterator[Problem]:
    seconds = float(told.get("binlog_expire_logs_seconds", 0)) or float(told.get("expire_logs_days", 0)) * 86400
    if 0 < seconds < LEAST_RETENTION_S:
        yield Problem(
            "SRC096",
            "the binlog is kept for a short time: what was not read by then is lost, and tables are copied again",
            client.place,
            f"{seconds / 86400:.1f} days",
            f"{LEAST_RETENTION_S // 86400} days or more",
            f"SET GLOBAL binlog_expire_logs_seconds = {7 * 86400}; and the same in the server's configuration",
        )


def _server_id(
    connection: Any, told: Mapping[str, str], options: MysqlOptions, client: MysqlClient
) -> Iterator[Problem]:
    """A replica that reads under another's number sends it away."""
    import pymysql

    taken = {int(told.get("server_id", 0)): "the server itself"}
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            taken |= {
                int(row[0]): f"a replica on {row[1] or 'a host without name'}" for row in ask(connection, statement)
            }
            break
        except pymysql.Error:
            continue  # the other server's word for it, or a right that is asked for elsewhere
    for number in (options.server_id, options.server_id + 1):
        if number in taken:
            yield Problem(
                "SRC097",
                "another one bears the number of this replicator",
                client.place,
                f"server_id {number}: {taken[number]}",
                f"a number of its own (now {options.server_id}), and the one behind it, which looks for news",
                "server_id: under `source`, unlike that of any server or replica",
            )


def _rights(connection: Any, options: MysqlOptions, told: Mapping[str, str], client: MysqlClient) -> Iterator[Problem]:
    if told.get("log_bin") != "ON":
        return
    user = _current_user(connection)
    look = _denied(connection, lambda: (read_files(connection), read_end(connection, client)))
    if look:
        yield _no_right("REPLICATION CLIENT", "see where the binlog stands", look, user, client)
        return
    end = read_end(connection, client)
    with client.session("check") as other:
        read = _denied(other, lambda: next(events(other, options.server_id + 1, end.file, end.pos), None))
    if read:
        yield _no_right("REPLICATION SLAVE", "read the binlog", read, user, client)


def _denied(connection: Any, act: Callable[[], object]) -> str:
    """What the server says where it refuses; empty where it does not."""
    import pymysql

    try:
        act()
    except pymysql.OperationalError as error:
        code, text = said(error)
        if code not in (1045, 1227):
            raise
        return text
    return ""


def _refused(connection: Any, tasks: Sequence[TableTask], found: Mapping[str, CatalogTable]) -> dict[str, str]:
    """Tables of which not all columns can be read."""
    import pymysql

    refused = {}
    for task in tasks:
        if table := found.get(task.table):
            names = ", ".join("`" + name.replace("`", "``").replace("%", "%%") + "`" for name in task.schema.names)
            try:
                ask(connection, f"SELECT {names} FROM `{table.database}`.`{table.name}` LIMIT 0")
            except pymysql.OperationalError as error:
                refused[task.table] = said(error)[1]
    return refused


def _no_right(right: str, what: str, found: str, user: str, client: MysqlClient) -> Problem:
    return Problem(
        "SRC011", f"the login may not {what}", client.place, found, right, do=f"GRANT {right} ON *.* TO {user};"
    )


def _current_user(connection: Any) -> str:
    ((told,),) = ask(connection, "SELECT CURRENT_USER()")
    name, _, host = str(told).rpartition("@")
    return f"'{name}'@'{host}'"

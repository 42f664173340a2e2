"""All problems of a database and its tables at once, each with the statement that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import (
    Database,
    Described,
    read_database,
    read_described,
    read_retention,
)
from airflow_cdc_provider.connectors.sources.sqlserver.check_tables import (
    missing_table,
    refused_problems,
    table_problems,
)
from airflow_cdc_provider.connectors.sources.sqlserver.client import Client, Session
from airflow_cdc_provider.connectors.sources.sqlserver.options import SqlServerOptions
from airflow_cdc_provider.connectors.sources.sqlserver.types import quoted
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem, of_table

MIN_VERSION = 13
"""SQL Server 2016."""

AZURE_DATABASE, MANAGED_INSTANCE = 5, 8
"""Engine editions. Both have a version number of their own."""

MIN_RETENTION = timedelta(days=3)
MAX_LAG_S = 3600


def never_run(replicator: str) -> Problem:
    return Problem(
        "SRC120",
        "the source sqlserver has never run against a real SQL Server",
        where=f"replicator {replicator}",
        found="it is tested with a simulator that follows Microsoft's documentation",
        do="compare the copies with `airflow cdc verify`, and report what you find; or read the change tables with "
        "Debezium: docs/guides/sqlserver.md",
    )


def find_problems(
    client: Client, options: SqlServerOptions, replicator: str, tasks: Sequence[TableTask]
) -> list[Problem]:
    """Raises SourceUnavailable if the server cannot be reached; a rejected login is one of the problems."""
    try:
        with client.session("check") as session:
            database = read_database(session)
            problems = [*database_problems(database, client.address)]
            if not database.captures:
                return problems
            problems += _capture_problems(session, database, client.address)
            described = read_described(session, database, options.schemas)
        problems += _table_problems(described, tasks, client.address, replicator)
        problems += _denied(client, described, tasks)
        return problems
    except CheckFailed as error:
        return list(error.problems)


def database_problems(database: Database, server: str) -> Iterator[Problem]:
    name = quoted(database.name)
    allowed = f"version {MIN_VERSION} (SQL Server 2016) or later, or a Managed Instance"
    if database.edition == AZURE_DATABASE:
        what, do = "Azure SQL Database is not supported", "read it through Debezium: docs/guides/sqlserver.md"
        yield Problem("SRC012", what, server, "it has no recovery fork, which identifies the log", allowed, do)
    elif database.edition != MANAGED_INSTANCE and database.version < MIN_VERSION:
        yield Problem("SRC012", "the server is too old", server, f"version {database.version}", allowed, "upgrade")
    if not database.captures:
        yield Problem(
            "SRC121",
            "the database captures no changes",
            server,
            "is_cdc_enabled = 0",
            "Change Data Capture",
            f"USE {name}; EXEC sys.sp_cdc_enable_db;",
        )
    if not database.snapshots:
        yield Problem(
            "SRC122",
            "the database does not allow snapshot isolation, which copies require",
            server,
            "snapshot_isolation_state is not ON",
            "ALLOW_SNAPSHOT_ISOLATION ON",
            f"ALTER DATABASE {name} SET ALLOW_SNAPSHOT_ISOLATION ON;",
        )


def _capture_problems(session: Session, database: Database, server: str) -> Iterator[Problem]:
    last = next(session.rows(queries.LAST_COMMIT), None)
    ((lag,),) = session.rows(queries.age(last[1])) if last else ((None,),)
    if lag is None or int(lag) > MAX_LAG_S:
        yield Problem(
            "SRC114",
            "the capture job is not at work: changes do not reach the change tables",
            server,
            f"last captured commit: {last[1] if last else 'none'}",
            f"less than {MAX_LAG_S // 60} minutes ago; without changes it records its progress every five minutes",
            f"USE {quoted(database.name)}; EXEC sys.sp_cdc_start_job @job_type = N'capture'; SQL Server Agent must "
            "run; see sys.dm_cdc_errors",
        )
    retention = read_retention(session)
    if retention is not None and retention < MIN_RETENTION:
        yield Problem(
            "SRC096",
            "changes are retained for a short time: those not read by then are lost, and tables are copied again",
            server,
            f"{retention / timedelta(days=1):.1f} days",
            f"{MIN_RETENTION.days} days or more",
            f"USE {quoted(database.name)}; EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 10080;",
        )


def _table_problems(
    described: Described, tasks: Sequence[TableTask], server: str, replicator: str
) -> Iterator[Problem]:
    for task in tasks:
        table = described.tables.get(task.table)
        found = [missing_table(task.table, server)]
        if table is not None:
            found = [*table_problems(task, table, described, server, replicator)]
        yield from of_table(task.table, found)


def refused_tables(client: Client, options: SqlServerOptions, tasks: Sequence[TableTask]) -> dict[str, Problem]:
    """The first problem of each table that no run copies as it is now. None in a database that captures no changes: its
    stream is lost."""
    if not tasks:
        return {}
    with client.session("check") as session:
        database = read_database(session)
        if not database.captures:
            return {}
        described = read_described(session, database, options.schemas)
    found = dict[str, Problem]()
    for task in tasks:
        if table := described.tables.get(task.table):
            for problem in of_table(task.table, refused_problems(task, table, described)):
                found.setdefault(task.table, problem)
    return found


def _denied(client: Client, described: Described, tasks: Sequence[TableTask]) -> Iterator[Problem]:
    """Tables with a column that the login cannot read. A session of its own for each: an error may end it."""
    for task in tasks:
        if table := described.tables.get(task.table):
            user = described.database.user
            try:
                with client.session("check") as session:
                    list(session.rows(queries.no_rows(table.sql, table.selected(task.schema))))
            except CheckFailed as error:
                do = f"GRANT SELECT ON {table.sql} TO {quoted(user)};"
                found, what = error.problems[0].found, f"user {user} lacks SELECT on {task.table}"
                yield Problem("SRC010", what, client.address, found, do=do, table=task.table)

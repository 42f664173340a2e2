"""All problems of a database and its tables at once, each with the statement that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import (
    CatalogTable,
    Database,
    read_database,
    read_instances,
    read_partitioned,
    read_retention,
    read_tables,
)
from airflow_cdc_provider.connectors.sources.sqlserver.check_tables import missing_table, table_problems
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
            tables = read_tables(session, options.schemas)
            problems += _table_problems(session, database, tables, tasks, client.address, replicator)
        problems += _denied(client, database, tables, tasks)
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
    session: Session,
    database: Database,
    tables: dict[str, CatalogTable],
    tasks: Sequence[TableTask],
    server: str,
    replicator: str,
) -> Iterator[Problem]:
    instances, partitioned = read_instances(session), read_partitioned(session)
    code_pages = {str(name): int(page) for name, page in session.rows(queries.CODE_PAGES)}
    for task in tasks:
        table = tables.get(task.table)
        if table is None:
            yield from of_table(task.table, [missing_table(task.table, server)])
            continue
        found = table_problems(
            task,
            table,
            instances.get(table.object_id, ()),
            code_pages,
            database.collation,
            table.object_id in partitioned,
            server,
            replicator,
        )
        yield from of_table(task.table, found)


def _denied(
    client: Client, database: Database, tables: dict[str, CatalogTable], tasks: Sequence[TableTask]
) -> Iterator[Problem]:
    """Tables with a column that the login cannot read. A session of its own for each: an error may end it."""
    for task in tasks:
        if table := tables.get(task.table):
            try:
                with client.session("check") as session:
                    list(session.rows(queries.no_rows(table.sql, table.selected(task.schema))))
            except CheckFailed as error:
                do = f"GRANT SELECT ON {table.sql} TO {quoted(database.user)};"
                found, what = error.problems[0].found, f"user {database.user} lacks SELECT on {task.table}"
                yield Problem("SRC010", what, client.address, found, do=do, table=task.table)

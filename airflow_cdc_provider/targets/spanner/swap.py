"""A committed copy gets the name of its table. The control row already names the copy, so any process that finds it
without the name renames it; a rename that comes twice fails, since the copy's first name is gone."""

from __future__ import annotations

from airflow_cdc_provider.core.errors import Blocked, CdcError, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.targets.spanner.catalog import (
    FoundTable,
    FoundTables,
    drop_statements,
    find_tables,
    replace_statements,
)
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.names import REPLACED, staging_table
from airflow_cdc_provider.targets.spanner.session import Session


def take_name(database: SpannerDatabase, session: Session, tables: FoundTables, copy: FoundTable) -> None:
    """Rename a copy to its table's name, and drop the copy that had it. Raises TargetUnavailable."""
    replaced = staging_table(tables.target, REPLACED, copy.identity)
    statements = replace_statements(session, tables, copy, replaced)
    try:
        failpoint("copy.in_swap")
        database.change_schema(statements)
        failpoint("copy.after_swap")
    except CdcError as error:
        named = find_tables(session, tables.target).named
        if named is None or named.identity != copy.identity:
            raise _not_renamed(database, tables.target, error) from error
    if tables.named is not None:
        drop(database, session, [replaced])


def drop(database: SpannerDatabase, session: Session, tables: list[str]) -> None:
    """Another process may drop them at the same time. Raises TargetUnavailable."""
    try:
        if statements := drop_statements(session, tables):
            database.change_schema(statements)
    except Blocked as error:
        raise _not_dropped(database, tables, error) from error


def _not_renamed(database: SpannerDatabase, target_table: str, error: CdcError) -> CdcError:
    if not isinstance(error, Blocked):
        return error
    return TargetUnavailable.of(
        "TGT085",
        "a committed copy cannot get the name of its table",
        f"{database.address}, table {target_table}",
        error.problems[0].found,
        do="drop the views and constraints that depend on the table; the next run renames the copy",
        data="the table still has the rows of the copy before",
    )


def _not_dropped(database: SpannerDatabase, tables: list[str], error: CdcError) -> TargetUnavailable:
    return TargetUnavailable.of(
        "TGT086",
        "a replaced copy cannot be dropped",
        f"{database.address}, table {', '.join(tables)}",
        error.problems[0].found,
        do="drop it, and what depends on it",
        data="the new copy is in force",
    )

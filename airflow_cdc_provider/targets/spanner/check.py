"""Checks of a Spanner target before a job starts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Protocol

from airflow_cdc_provider.core.connections.google import google_account
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem, of_table
from airflow_cdc_provider.core.spec.selection import all_but_one
from airflow_cdc_provider.core.table.merge_plan import DELETED, ORDER
from airflow_cdc_provider.targets.common_checks import check_definition, document_problems, foreign_table
from airflow_cdc_provider.targets.spanner.catalog import GOOGLE_SQL, FoundTables, find_dialect
from airflow_cdc_provider.targets.spanner.columns import rewritten_documents
from airflow_cdc_provider.targets.spanner.control import ControlRow
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.names import (
    COPY,
    LONGEST_NAME,
    ROW,
    column_name,
    is_name,
    not_a_name,
    quoted,
    same_names,
)
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.session import Session
from airflow_cdc_provider.targets.target import TargetState

MOST_COLUMNS, MOST_KEY_COLUMNS = 1_024, 16
MISSING_PRIVILEGE, MISSING_OBJECT = "TGT062", "TGT067"


class CheckedTarget(Protocol):
    """The part of the target that is checked."""

    database: SpannerDatabase

    def locate(self, target_table: str) -> str: ...

    def ended(self, session: Session, target_table: str) -> tuple[ControlRow, FoundTables]: ...

    def as_state(self, table: str, row: ControlRow, tables: FoundTables) -> TargetState: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    json = target.database.options.json
    found = [problem for task in tables for problem in of_table(task.table, _check_definition(task, json))]
    try:
        with target.database.session("check") as session:
            if (dialect := find_dialect(session)) != GOOGLE_SQL:
                do = "create a database of this dialect, and name it in target.database"
                what = "the database has another dialect"
                return [*found, Problem("TGT088", what, target.database.address, dialect, GOOGLE_SQL, do)]
            _try_create_table(target.database)
            return [
                *found,
                *(p for task in tables for p in of_table(task.table, _check_table(target, session, task))),
            ]
    except CdcError as error:
        return [*found, *error.problems, *_remedies(target.database, error)]


def _try_create_table(database: SpannerDatabase) -> None:
    """Create a table and drop it again, in one operation: the rights that every copy requires."""
    name = quoted(f"cdc_check_{secrets.token_hex(6)}")
    database.change_schema([f"CREATE TABLE {name} (`n` INT64) PRIMARY KEY (`n`)", f"DROP TABLE {name}"])


def _remedies(database: SpannerDatabase, error: CdcError) -> Iterator[Problem]:
    """The commands that create or grant what is missing."""
    options, (problem, *_) = database.options, error.problems
    if problem.code == MISSING_PRIVILEGE:
        command = (
            f"gcloud spanner databases add-iam-policy-binding {options.database} --instance={options.instance}"
            f" --member={google_account(database.info)} --role=roles/spanner.databaseUser"
        )
        what = "the account may not read, write and change tables"
        yield Problem("TGT059", what, database.address, problem.found, do=command)
    if problem.code == MISSING_OBJECT:
        command = f"gcloud spanner databases create {options.database} --instance={options.instance}"
        yield Problem("TGT052", "the database does not exist", database.address, database.path, do=command)


def table_problems(task: TableTask, json: Json) -> Iterator[Problem]:
    """What keeps every table of the database from holding the copy."""
    yield from check_definition(task, "Spanner")
    yield from document_problems(task, rewritten_documents(task.schema, json))
    schema = task.schema
    if not is_name(task.target):
        yield not_a_name(task.table, task.target)
    technical = [ORDER, DELETED] if schema.key else [ROW, COPY]
    for group in same_names([*schema.names, *technical]):
        do = "exclude all but one of them in tables.columns"
        found, what = ", ".join(group), f"columns would have the name {column_name(group[0])} in Spanner"
        own = [name for name in group if name in schema.names]
        omitted = tuple(own) if len(own) < len(group) else all_but_one(own, schema.key)
        yield Problem("TGT057", what, task.table, found, do=do, columns=omitted)
    if too_long := [name for name in schema.names if len(column_name(name)) > LONGEST_NAME]:
        found, do, allowed = ", ".join(too_long), "exclude the columns", f"{LONGEST_NAME} characters"
        yield Problem("TGT054", "names are too long", task.table, found, allowed, do, columns=tuple(too_long))
    for number, most, what in (
        (len(schema.names) + len(technical), MOST_COLUMNS, "columns"),
        (len(schema.key), MOST_KEY_COLUMNS, "columns of a key"),
    ):
        if number > most:
            yield Problem("TGT058", f"a table has too many {what} for Spanner", task.table, str(number), str(most))


def _check_definition(task: TableTask, json: Json) -> Iterator[Problem]:
    yield from table_problems(task, json)
    if task.rule.cluster_by:
        do = "remove cluster_by, and create a secondary index on the target table"
        yield Problem("TGT055", "cluster_by has no effect in this database", task.table, "cluster_by", "nothing", do)


def _check_table(target: CheckedTarget, session: Session, task: TableTask) -> Iterator[Problem]:
    state = target.as_state(task.table, *target.ended(session, task.target))
    if state.exists and state.control is None:
        yield foreign_table(target.locate(task.target))
    if state.unfit:
        yield state.unfit.problem

"""What keeps a table from being copied. Pure: facts in, problems out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.connectors.sources.mysql.charsets import knows
from airflow_cdc_provider.connectors.sources.mysql.wanted_forms import NOT_CAST
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.filters import literal
from airflow_cdc_provider.core.table.schema import Kind

DATES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
DATED = "mend `where`; zero dates lie before all others: `>= '0001-01-01'` leaves them out, `< '0001-01-01'` names them"


def table_problems(
    tasks: Sequence[TableTask],
    found: Mapping[str, CatalogTable],
    refused: Mapping[str, str],
    user: str,
    place: str,
    told: Mapping[str, str],
) -> list[Problem]:
    """``refused``: table → what the server said when it was asked for no row of it. ``user`` as a GRANT names it."""
    problems: list[Problem] = []
    for task in tasks:
        table = found.get(task.table)
        if table is None:
            problems.append(no_table(task.table, place))
            continue
        if task.table in refused:
            problems.append(_no_select(task.table, refused[task.table], user, place))
        problems += _key(task)
        problems += _cast(task, table)
        problems += _texts(task, table)
        problems += _filter(task, told)
    return problems


def _cast(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    for column in table.schema.columns:
        if column.name in task.rule.columns.cast and column.type.kind in NOT_CAST:
            yield Problem(
                "SRC103",
                f"the binlog does not tell column {column.name} of {task.table} as the server spells it",
                where=task.table,
                found=f"`columns.cast` of a {column.native}",
                allowed="whole numbers, decimals, dates, times, texts",
                do="take it out of `cast`",
            )


def no_table(table: str, place: str) -> Problem:
    return Problem(
        "SRC019",
        f"there is no table {table}",
        where=place,
        found="no such table that the login sees, in the databases of the definition",
        do="create it, grant SELECT on it, or take it out of the definition",
    )


def no_key(table: str) -> Problem:
    return Problem(
        "SRC098",
        f"{table} has no key: which row of the target a changed row is cannot be told",
        where=table,
        found="no primary key, and no unique key of columns that are NOT NULL",
        allowed="one of them, or `key` in the table's rule",
        do=f"ALTER TABLE {table} ADD PRIMARY KEY (…); or name columns that are unique under `key`",
    )


def _no_select(table: str, found: str, user: str, place: str) -> Problem:
    do = f"GRANT SELECT ON {table} TO {user};"
    return Problem("SRC010", f"the login may not read {table}", place, found, "SELECT", do)


def _key(task: TableTask) -> Iterator[Problem]:
    if not task.schema.key:
        yield no_key(task.table)


def _texts(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    strange = [
        f"{one.name} ({one.charset})"
        for one in table.columns
        if one.name in task.schema.names and one.charset and not knows(one.charset)
    ]
    if strange:
        yield Problem(
            "SRC099",
            f"{task.table} has text in a character set that cannot be read from the binlog",
            where=task.table,
            found=", ".join(strange),
            allowed="any other character set",
            do="leave the columns out with `columns.exclude`, or convert them to utf8mb4",
        )


def _filter(task: TableTask, told: Mapping[str, str]) -> Iterator[Problem]:
    image = told.get("binlog_row_image", "FULL").upper()
    if task.rule.where and image != "FULL":
        yield Problem(
            "SRC009",
            f"{task.table} has a row filter: the stream must tell all values of a changed row",
            where=task.table,
            found=f"binlog_row_image = {image}",
            allowed="binlog_row_image = FULL",
            do="SET GLOBAL binlog_row_image = 'FULL';",
        )
    yield from operand_problems(task)


def operand_problems(task: TableTask) -> Iterator[Problem]:
    """Values of the row filter that its columns can never hold, or that no literal of theirs names."""
    for condition in task.rule.where:
        kind = task.schema.column(condition.column).type.kind
        given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        for value in given:
            try:
                if value is not None:
                    literal(kind, value)
            except ValueError as error:
                yield Problem(
                    "SRC018",
                    f"`where` compares column {condition.column} of {task.table} with what it can never hold",
                    task.table,
                    f"{type(value).__name__}: {error}",
                    f"a value of type {kind}",
                    DATED if kind in DATES else "mend `where`",
                )

"""Problems that prevent a table from being copied. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable, name_in_sql
from airflow_cdc_provider.connectors.sources.mysql.value_conversion import NOT_CASTABLE
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table

ZERO_DATES = "correct `where`; zero dates sort first: `>= '0001-01-01'` excludes them, `< '0001-01-01'` selects them"


def table_problems(
    tasks: Sequence[TableTask],
    tables: Mapping[str, CatalogTable],
    server: str,
    variables: Mapping[str, str],
) -> Iterator[Problem]:
    """Beside those of ``refused``."""
    for task in tasks:
        table = tables.get(task.name_in_source)
        found = _table_problems(task, table, variables) if table else [missing_table(task.name_in_source, server)]
        yield from of_table(task.table, found)


def _table_problems(task: TableTask, table: CatalogTable, variables: Mapping[str, str]) -> Iterator[Problem]:
    if not (task.schema.key or table.generated_key):
        yield _missing_key(task.table)
    yield from _cast_problems(task, table)
    yield from _image_problems(task, variables)
    yield from filter_problems(task)


def missing_table(table: str, server: str) -> Problem:
    return Problem(
        "SRC019",
        f"table {table} does not exist",
        where=server,
        found="no such table that the login can see in the databases of the definition",
        do="create it, grant SELECT on it, or remove it from the definition",
    )


def _missing_key(table: str) -> Problem:
    return Problem(
        "SRC098",
        f"{table} has no key: the target row of a changed row cannot be identified",
        where=table,
        found="no primary key, and no unique key of columns that are NOT NULL",
        allowed="one of them, or `key` in the table's rule",
        do=f"ALTER TABLE {name_in_sql(table)} ADD PRIMARY KEY (…); or list columns that are unique under `key`",
    )


def _cast_problems(task: TableTask, table: CatalogTable) -> Iterator[Problem]:
    for column in table.schema.columns:
        if column.name in task.rule.columns.as_text and column.type.kind in NOT_CASTABLE:
            yield Problem(
                "SRC103",
                f"column {column.name} of {task.table} cannot be cast: the binlog has no text of its values",
                where=task.table,
                found=f"`columns.cast` of a {column.native}",
                allowed="integers, decimals, dates, times, texts",
                do="remove it from `cast`",
                columns=(column.name,),
            )


def _image_problems(task: TableTask, variables: Mapping[str, str]) -> Iterator[Problem]:
    image = variables.get("binlog_row_image", "FULL").upper()
    if (task.rule.where or not task.rule.snapshot.extent.is_whole) and image != "FULL":
        why = "has a row filter" if task.rule.where else "is not copied as a whole"
        yield Problem(
            "SRC009",
            f"{task.table} {why}, which requires all values of a changed row",
            where=task.table,
            found=f"binlog_row_image = {image}",
            allowed="binlog_row_image = FULL",
            do="SET GLOBAL binlog_row_image = 'FULL';",
        )


def filter_problems(task: TableTask) -> Iterator[Problem]:
    return operand_problems(task, do_for_dates=ZERO_DATES)

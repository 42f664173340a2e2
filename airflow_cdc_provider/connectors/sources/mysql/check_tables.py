"""Problems that prevent a table from being copied. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.sources.mysql.catalog import CatalogTable
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table


def table_problems(
    tasks: Sequence[TableTask],
    tables: Mapping[str, CatalogTable],
    server: str,
    variables: Mapping[str, str],
) -> Iterator[Problem]:
    """Beside those of ``refused``."""
    for task in tasks:
        found = [] if task.name_in_source in tables else [missing_table(task.name_in_source, server)]
        yield from of_table(task.table, found or _image_problems(task, variables))


def missing_table(table: str, server: str) -> Problem:
    return Problem(
        "SRC019",
        f"table {table} does not exist",
        where=server,
        found="no such table that the login can see in the databases of the definition",
        do="create it, grant SELECT on it, or remove it from the definition",
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

"""Problems of a feed with its tables and their rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.transports.messages.discovery import DiscoveredTables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.log.server_orders import ONE_ORIGIN, origins_text


def table_problems(
    tasks: Sequence[TableTask], discovered: DiscoveredTables, without_rows: Mapping[str, str]
) -> Iterator[Problem]:
    """``without_rows``: tables whose messages contain no rows → the remedy."""
    for table in discovered.without_schema:
        yield from of_table(table, [_missing_schema(table)])
    for task in tasks:
        remedy = without_rows.get(task.table)
        yield from of_table(task.table, [_missing_rows(task.table, remedy)] if remedy is not None else ())
        origins = discovered.origins.get(task.name_in_source, frozenset())
        yield from of_table(task.table, [_several_origins(task.table, origins)] if len(origins) > 1 else ())
        yield from of_table(task.table, rule_problems(task))


def rule_problems(task: TableTask) -> Iterator[Problem]:
    yield from operand_problems(task, "SRC072")
    for condition in task.rule.where:
        if condition.column in task.rule.columns.as_text or task.schema.has_text_of(condition.column):
            yield _converted_operand(task.table, condition.column)
    if not task.schema.key:
        yield Problem(
            "SRC073",
            f"{task.table} has no key, and its events may be delivered twice",
            where=task.table,
            found="no key in messages, schema or YAML",
            do=f"write `key: [column, …]` beside {task.table} in the YAML if columns identify a row (old Datastream "
            "streams of Oracle contain no keys), or leave the table out",
        )


def _converted_operand(table: str, column: str) -> Problem:
    return Problem(
        "SRC106",
        f"`where` compares column {column} of {table}, whose values differ between the feed and the copy",
        where=table,
        found="`columns.cast`, or `on_unrepresentable: set_null`",
        allowed="conditions on columns that are copied unchanged",
        do="remove the condition, or the column from `cast`, or `set_null`; or compare another column",
    )


def _missing_schema(table: str) -> Problem:
    return Problem(
        "SRC071",
        f"the columns of {table} are unknown",
        where=table,
        found="messages without a schema",
        do="add its schema to the file that `schemas` under `source` names, or have the messages contain it",
    )


def _missing_rows(table: str, do: str) -> Problem:
    return Problem(
        "SRC077",
        f"the feed of {table} contains the keys of changed rows, and not their values",
        where=table,
        found="messages with a key only, and no source to fetch the row from",
        allowed="rows, or the columns that changed",
        do=do,
        data="the messages remain in the feed",
    )


def _several_origins(table: str, origins: Collection[str]) -> Problem:
    return Problem(
        "SRC076",
        f"events of {table} come from several databases, and cannot be ordered",
        where=table,
        found=origins_text(origins),
        allowed="one connector and one database for each table",
        do=ONE_ORIGIN,
    )

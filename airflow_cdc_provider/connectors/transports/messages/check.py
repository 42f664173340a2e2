"""Problems of a feed with its tables and their rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.transports.messages.discovery import DiscoveredTables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.filters import literal


def table_problems(
    tasks: Sequence[TableTask], discovered: DiscoveredTables, without_rows: Mapping[str, str]
) -> Iterator[Problem]:
    """``without_rows``: tables whose messages contain no rows → the remedy."""
    yield from (_missing_schema(table) for table in discovered.without_schema)
    for task in tasks:
        if task.table in without_rows:
            yield _missing_rows(task.table, without_rows[task.table])
        yield from rule_problems(task)


def rule_problems(task: TableTask) -> Iterator[Problem]:
    for condition in task.rule.where:
        kind = task.schema.column(condition.column).type.kind
        values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        for value in values:
            try:
                literal(kind, value) if value is not None else None
            except ValueError as error:
                yield Problem(
                    "SRC072",
                    f"`where` compares column {condition.column} of {task.table} with a value it cannot have",
                    where=task.table,
                    found=f"{type(value).__name__}: {error}",
                    allowed=f"a value of type {kind}",
                    do="correct `where`",
                )
        if condition.column in task.rule.columns.cast or task.schema.has_text_of(condition.column):
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


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raises CheckFailed if there are any."""
    if found := tuple(problems):
        raise CheckFailed(*found)


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

"""What a feed cannot keep of what the YAML asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_cdc_provider.connectors.transports.messages.discovery import DiscoveredTables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.filters import literal


def table_problems(tasks: Sequence[TableTask], told: DiscoveredTables, untold: Mapping[str, str]) -> Iterator[Problem]:
    """``untold``: tables of which no rows are told → how to have them told."""
    yield from (_mute(table) for table in told.mute)
    for task in tasks:
        if task.table in untold:
            yield _untold(task.table, untold[task.table])
        yield from rule_problems(task)


def rule_problems(task: TableTask) -> Iterator[Problem]:
    for condition in task.rule.where:
        kind = task.schema.column(condition.column).type.kind
        given = condition.value if isinstance(condition.value, tuple) else (condition.value,)
        for value in given:
            try:
                literal(kind, value) if value is not None else None
            except ValueError as error:
                yield Problem(
                    "SRC072",
                    f"`where` compares column {condition.column} of {task.table} with what it can never hold",
                    where=task.table,
                    found=f"{type(value).__name__}: {error}",
                    allowed=f"a value of type {kind}",
                    do="mend `where`",
                )
        if condition.column in task.rule.columns.cast or task.schema.has_text_of(condition.column):
            yield _compared(task.table, condition.column)
    if not task.schema.key:
        yield Problem(
            "SRC073",
            f"{task.table} has no key, and its events may come twice",
            where=task.table,
            found="no key in messages, schema or YAML",
            do=f"write `key: [column, …]` beside {task.table} in the YAML where columns identify a row (old Datastream "
            "streams of Oracle do not tell the key of any table), or leave the table out",
        )


def refuse(problems: Iterable[Problem]) -> None:
    """Raises CheckFailed where there are any."""
    if found := tuple(problems):
        raise CheckFailed(*found)


def _compared(table: str, column: str) -> Problem:
    return Problem(
        "SRC106",
        f"`where` compares column {column} of {table}, which the copy holds in another form than the feed tells",
        where=table,
        found="`columns.cast`, or `on_unrepresentable: set_null`",
        allowed="conditions on columns that are copied as they are",
        do="remove the condition, or the column from `cast`; without `set_null`, or compare another column",
    )


def _mute(table: str) -> Problem:
    return Problem(
        "SRC071",
        f"nobody tells the columns of {table}",
        where=table,
        found="messages without a schema",
        do="write its schema into the file that `schemas` under `source` names, or let the messages tell it",
    )


def _untold(table: str, do: str) -> Problem:
    return Problem(
        "SRC077",
        f"the feed of {table} tells that rows change, and not what they are now",
        where=table,
        found="messages with no more than a key, and nobody to ask for the row",
        allowed="rows, or the columns that changed",
        do=do,
        data="what the feed has told stays where it is",
    )

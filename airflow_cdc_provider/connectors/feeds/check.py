"""What a feed cannot keep of what the YAML asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from airflow_cdc_provider.connectors.feeds.discovery import Told
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.steps import TableTask


def table_problems(tasks: Sequence[TableTask], told: Told) -> Iterator[Problem]:
    yield from (_mute(table) for table in told.mute)
    for task in tasks:
        yield from rule_problems(task)


def rule_problems(task: TableTask) -> Iterator[Problem]:
    if task.rule.where:
        yield Problem(
            "SRC072",
            f"the rows of {task.table} cannot be chosen by `where`",
            where=task.table,
            found=f"{len(task.rule.where)} conditions",
            allowed="all rows: an event need not tell what its row was before",
            do="remove `where`, and choose rows where the table is read",
        )
    if not task.schema.key:
        yield Problem(
            "SRC073",
            f"{task.table} has no key, and its events may come twice",
            where=task.table,
            found="no key in messages, schema or YAML",
            do="name `key` in the YAML where columns identify a row, or leave the table out",
        )


def refuse(problems: Iterable[Problem]) -> None:
    """Raises CheckFailed where there are any."""
    if found := tuple(problems):
        raise CheckFailed(*found)


def _mute(table: str) -> Problem:
    return Problem(
        "SRC071",
        f"nobody tells the columns of {table}",
        where=table,
        found="messages without a schema",
        do="write its schema into the file that `schemas` under `source` names, or let the messages tell it",
    )

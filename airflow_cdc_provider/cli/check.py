"""``airflow cdc check NAME``: every obstacle at once, each with its cure."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer
from airflow_cdc_provider.cli.replicators import find, opened
from airflow_cdc_provider.cli.shared_folders import unshared
from airflow_cdc_provider.connectors.source import LimitsCopies
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.connections.tls import ReachesUnverified
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.core.table.special_values import unsupported_values, unsupported_values_note
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.hooks.spark import spark_master
from airflow_cdc_provider.hooks.state import unverified_state
from airflow_cdc_provider.java import find_java
from airflow_cdc_provider.staging.store import supports_exclusive_create


@command
def check(args: argparse.Namespace) -> Answer:
    replicator = opened(find(args.name))
    problems, tables = _tables(replicator)
    problems += _asked(lambda: replicator.source.check(tables))
    problems += _asked(lambda: replicator.target.check(tables))
    problems += _asked(lambda: _staging(replicator))
    problems += _asked(lambda: _spark(replicator))
    problems = list({(problem.code, problem.where, problem.what): problem for problem in problems}.values())
    warnings = _unverified(replicator)
    notes = [*_unheld(replicator, tables)]
    body = {
        "replicator": replicator.name,
        "ready": not problems,
        "tables": [task.table for task in tables],
        "warnings": [to_plain(warning) for warning in warnings],
        "unheld": notes,
        "unseen": replicator.source.unseen,
    }
    lines = [f"warning: {warning}" for warning in warnings]
    lines.append(f"note: {replicator.name} cannot see {replicator.source.unseen}")
    lines += [f"note: {text}" for text in notes]
    if not problems:
        lines.append(f"{replicator.name} is ready: {len(tables)} tables{_at_once(replicator, len(tables))}")
    return Answer(body, lines=lines, problems=problems, code=a.CONFIGURATION if problems else a.OK)


def _at_once(replicator: Replicator, tables: int) -> str:
    """Where the source has not room to copy all of them side by side."""
    source = replicator.source
    room = source.copies_at_once() if isinstance(source, LimitsCopies) else tables
    return f", copied {room} at a time: the source has no room for more" if room < tables else ""


def _asked(ask: Callable[[], Iterable[Problem]]) -> list[Problem]:
    """One obstacle must not hide the others: what cannot be asked is an obstacle too."""
    try:
        return list(ask())
    except CdcError as error:
        return list(error.problems)


def _unverified(replicator: Replicator) -> list[Problem]:
    """What may be, and is said all the same. An extra that cannot be followed is one of the problems already."""
    ends = [end for end in (replicator.source, replicator.target) if isinstance(end, ReachesUnverified)]
    warnings: list[Problem] = []
    for end in ends:
        with suppress(CdcError):
            warnings += end.unverified()
    with suppress(CdcError):
        warnings += unverified_state()
    return list(dict.fromkeys(warnings))


def _unheld(replicator: Replicator, tables: Iterable[TableTask]) -> Iterator[str]:
    """One line for each table that may meet values which its copy cannot hold."""
    for task in tables:
        if columns := unsupported_values(task, replicator.source.may_hold, replicator.target.unsupported_values):
            yield unsupported_values_note(task.table, columns)


def _tables(replicator: Replicator) -> tuple[list[Problem], list[TableTask]]:
    try:
        described = replicator.source.tables()
    except CdcError as error:
        return list(error.problems), []
    selections, problems = select(replicator.definition, described, replicator.target.table_name)
    return list(problems), [selection.task(TableState.PENDING) for selection in selections]


def _staging(replicator: Replicator) -> list[Problem]:
    """Staging must take a file exclusively. Raises StagingUnavailable where it cannot be written at all."""
    store = replicator.log.store
    if supports_exclusive_create(store):
        return []
    return [
        Problem(
            "ENV004",
            "staging does not create files exclusively",
            where=store.url(""),
            do="use a file system with hard links, or an object store with conditional writes",
        )
    ]


def _spark(replicator: Replicator) -> Iterable[Problem]:
    """A usable Java, a Spark connection, and folders that its executors can reach."""
    find_java()
    return unshared(replicator.definition, spark_master(replicator.definition.spark.connection))

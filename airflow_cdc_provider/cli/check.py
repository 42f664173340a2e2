"""``airflow cdc check NAME``: every obstacle at once, each with its cure."""

from __future__ import annotations

import argparse
import tempfile
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from airflow_cdc_provider.cli import answer as a
from airflow_cdc_provider.cli.answer import Answer
from airflow_cdc_provider.cli.finding import find, opened
from airflow_cdc_provider.cli.running import command
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.selection import select
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import TableTask
from airflow_cdc_provider.hooks.spark import spark_master
from airflow_cdc_provider.java import find_java


@command
def check(args: argparse.Namespace) -> Answer:
    replicator = opened(find(args.name))
    problems, tables = _tables(replicator)
    problems += _asked(lambda: replicator.source.check(tables))
    problems += _asked(lambda: replicator.target.check(tables))
    problems += _asked(lambda: _staging(replicator))
    problems += _asked(lambda: _spark(replicator))
    body = {"replicator": replicator.name, "ready": not problems, "tables": [task.table for task in tables]}
    lines = [] if problems else [f"{replicator.name} is ready: {len(tables)} tables"]
    return Answer(body, lines=lines, problems=problems, code=a.CONFIGURATION if problems else a.OK)


def _asked(ask: Callable[[], Iterable[Problem]]) -> list[Problem]:
    """One obstacle must not hide the others: what cannot be asked is an obstacle too."""
    try:
        return list(ask())
    except CdcError as error:
        return list(error.problems)


def _tables(replicator: Replicator) -> tuple[list[Problem], list[TableTask]]:
    try:
        described = replicator.source.tables()
    except CdcError as error:
        return list(error.problems), []
    selections, problems = select(replicator.definition, described, replicator.target.table_name)
    return list(problems), [selection.task(TableState.PENDING) for selection in selections]


def _staging(replicator: Replicator) -> list[Problem]:
    """Staging must take a file exclusively. Raises StagingUnavailable where it cannot be written at all."""
    store, name = replicator.log.store, f".check-{uuid.uuid4().hex}"
    try:
        if store.create(name, b"check") and not store.create(name, b"again"):
            return []
    finally:
        store.delete(name)
    return [
        Problem(
            "ENV004",
            "staging does not create files exclusively",
            where=store.url(""),
            do="use a file system with hard links, or an object store with conditional writes",
        )
    ]


def _spark(replicator: Replicator) -> list[Problem]:
    """A usable Java, a Spark connection, and a staging folder that its executors can reach."""
    find_java()
    definition = replicator.definition
    master = spark_master(definition.spark.connection)
    location = definition.staging.location.removeprefix("file://")
    on_this_worker = "://" not in location and Path(location).is_relative_to(tempfile.gettempdir())
    if master.startswith("local") or "127.0.0.1" in master or not on_this_worker:
        return []
    return [
        Problem(
            "ENV005",
            "executors elsewhere cannot reach staging",
            where=f"staging.location {definition.staging.location}",
            found=f"a temporary folder of this machine, and Spark at {master}",
            allowed="a folder or URL that every worker and executor shares",
            do="put staging on shared storage",
        )
    ]

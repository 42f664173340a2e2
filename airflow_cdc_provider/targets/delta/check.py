"""Checks of a Delta target before a job starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem, StagingUnavailable, of_table
from airflow_cdc_provider.core.storage.locations import ALLOWED, FOLDER, Location
from airflow_cdc_provider.core.storage.stores import STORES
from airflow_cdc_provider.staging.local_store import HAS_HARD_LINKS
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import Store, supports_exclusive_create
from airflow_cdc_provider.targets.common_checks import (
    check_catalog_name,
    check_folder_writable,
    check_names,
    definition_problems,
    existing_table,
    nearest_existing_folder,
)
from airflow_cdc_provider.targets.delta.names import FILE_PREFIX, LOG
from airflow_cdc_provider.targets.target import TargetState

METADATA_COLUMNS = frozenset({"_metadata"})
"""Spark's column of each file, which a merge reads."""

NOT_EXCLUSIVE = "the target's storage does not support exclusive creation of files"


class CheckedTarget(Protocol):
    """The part of a Delta target that is checked."""

    location: str
    catalog: str
    parsed_location: Location
    connection: ConnectionInfo

    @property
    def store(self) -> Store: ...

    def locate(self, target_table: str) -> str: ...

    def state(self, table: str, target_table: str) -> TargetState: ...


def check_tables(target: CheckedTarget, tables: Sequence[TableTask]) -> list[Problem]:
    if problems := list(_check_location(target)):
        return problems
    found = ((task.table, (*table_problems(target, task), *_check_table(target, task))) for task in tables)
    return [problem for table, problems in found for problem in of_table(table, problems)]


def _check_location(target: CheckedTarget) -> Iterator[Problem]:
    where = f"target.location {target.location}" if target.location else "target.location"
    yield from check_catalog_name(target.catalog)
    if not target.location:
        yield Problem("TGT001", "a Delta target needs a location", where, "nothing", "a folder", "set target.location")
        return
    if target.parsed_location.scheme in STORES:
        yield from _reported(target)
        return
    if target.parsed_location.scheme != FOLDER or not target.location.startswith("/"):
        yield Problem("TGT001", "storage type not supported for Delta tables", where, target.location, ALLOWED)
        return
    if unwritable := list(check_folder_writable(target.location)):
        yield from unwritable
        return
    yield from _reported(target)


def _reported(target: CheckedTarget) -> Iterator[Problem]:
    try:
        yield from exclusive_problems(target)
    except CdcError as error:
        yield from error.problems


def exclusive_problems(target: CheckedTarget) -> list[Problem]:
    """The storage must create files exclusively: otherwise two writers could both commit the same version of a table.
    Raises StagingUnavailable if it is not reachable or not writable, CheckFailed for a connection that is not valid."""
    where, location = f"target.location {target.location}", target.location
    do = "use an object store that supports `If-None-Match: *`, as S3, Azure and Cloud Storage do"
    not_exclusive = Problem("TGT004", NOT_EXCLUSIVE, where, do=do)
    if target.parsed_location.scheme not in STORES:
        location, do = (
            str(nearest_existing_folder(location)),
            "use such a file system, or an object store with conditional writes",
        )
        not_exclusive = Problem("TGT004", NOT_EXCLUSIVE, where, "no hard links", HAS_HARD_LINKS, do)
    try:
        return [] if supports_exclusive_create(open_store(location, target.connection)) else [not_exclusive]
    except StagingUnavailable as error:
        if all(problem.code == "STG011" for problem in error.problems):
            return [not_exclusive]
        raise


def table_problems(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    """What keeps every table of the target from holding the copy."""
    yield from definition_problems(task, "Delta", target.parsed_location)
    yield from check_names(task, METADATA_COLUMNS)


def _check_table(target: CheckedTarget, task: TableTask) -> Iterator[Problem]:
    path = target.locate(task.target)
    state = target.state(task.table, task.target)
    if not state.exists:
        if not all(name.startswith((FILE_PREFIX, LOG)) for name in target.store.names(task.target)):
            do = "choose another tables.target, or move the folder away"
            yield Problem("TGT011", "the target folder is not empty and not a Delta table", path, "files", "", do)
        return
    if state.token is None:
        yield from existing_table(task, path)
        return
    if state.unfit:
        yield state.unfit.problem

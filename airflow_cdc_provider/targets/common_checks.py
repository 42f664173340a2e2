"""Checks that are the same for every target."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from airflow_cdc_provider.core.columns.taken_over import other_values
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Problem, of_table
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.selection import RESERVED_PREFIX, all_but_one
from airflow_cdc_provider.core.storage.locations import FOLDER, Location
from airflow_cdc_provider.core.table.equal_names import equal_without_case

LONGEST_FILE_NAME = 255
"""In bytes, in the file systems of Linux."""


def check_catalog_name(catalog: str) -> Iterator[Problem]:
    if catalog and not (1 <= len(catalog.split(".")) <= 2 and all(catalog.split("."))):
        yield Problem("TGT002", "invalid catalog name", "target.catalog", catalog, "schema or catalog.schema")


def check_folder_writable(folder: str) -> Iterator[Problem]:
    existing = nearest_existing_folder(folder)
    if not os.access(existing, os.W_OK | os.X_OK):
        do = f"chown or chmod {existing} so that the users of Airflow and Spark can write"
        where = f"target.location {folder}"
        yield Problem("TGT003", "the target folder is not writable", where, f"no write permission on {existing}", do=do)


def check_definition(task: TableTask, engine: str) -> Iterator[Problem]:
    """Problems of a table and its rule that no table of ``engine`` can resolve."""
    if equal := equal_without_case(task.schema.names):
        found = ", ".join(sorted(name.lower() for name, *_ in equal))
        do = "exclude one of each pair in tables.columns"
        omitted = tuple(name for group in equal for name in all_but_one(group, task.schema.key))
        what, allowed = "column names differ only in case", f"{engine} ignores case"
        yield Problem("TGT014", what, task.table, found, allowed, do, columns=omitted)
    of_source = [column.name for column in task.schema.columns if column.source_name and not column.text_of]
    reserved = [name for name in of_source if name.lower().startswith(RESERVED_PREFIX)]
    if reserved:
        found, do = ", ".join(reserved), "exclude them in tables.columns"
        what = f"column names starting with {RESERVED_PREFIX} are reserved"
        yield Problem("TGT015", what, task.table, found, do=do, columns=tuple(reserved))
    if not task.schema.key and task.rule.on_delete is OnDelete.SOFT:
        do = "give the table a key (tables.key), or use on_delete: hard"
        yield Problem("TGT016", "soft deletes need a key", task.table, "on_delete: soft, no key", "hard, ignore", do)
    unknown = [name for name in task.cluster_by if name not in task.schema.names]
    if unknown:
        yield Problem(
            "TGT017", "cluster_by names unknown columns", task.table, ", ".join(unknown), ", ".join(task.schema.names)
        )


def document_problems(task: TableTask, rewritten: Sequence[str]) -> Iterator[Problem]:
    """A row without key is found by the texts of its values, a version is compared with the next one by them, and a
    copy that continues a history compares with them what it has. ``rewritten``: columns whose texts change in the
    target."""
    history, is_keyless = task.rule.history, not task.schema.key
    if rewritten and (is_keyless or history is not History.NONE):
        what = "the target writes documents in a form of its own, and rows of this table are compared by their texts"
        found = f"{', '.join(rewritten)}, {'no key' if is_keyless else f'history: {history}'}"
        allowed, do = "documents as texts", "json: text in the options of the target, or exclude the columns"
        yield Problem("TGT099", what, task.table, found, allowed, do, columns=tuple(rewritten))


def check_names(task: TableTask, reserved: Collection[str]) -> Iterator[Problem]:
    """``reserved``: the target's own columns, in lower case."""
    if taken := sorted(name for name in task.schema.names if name.lower() in reserved):
        found, do = ", ".join(taken), "exclude the columns in tables.columns"
        what = "the target keeps these names for columns of its own"
        yield Problem("TGT084", what, task.table, found, do=do, columns=tuple(taken))


def definition_problems(task: TableTask, engine: str, location: Location | None) -> Iterator[Problem]:
    """Of a table in a lake. ``location``: None if a catalog chooses it."""
    yield from check_definition(task, engine)
    if location and location.scheme == FOLDER and len(task.target.encode()) > LONGEST_FILE_NAME:
        found, allowed = task.target, f"{LONGEST_FILE_NAME} bytes"
        yield Problem("TGT054", "names are too long", task.table, found, allowed, "choose another tables.target")


def first_problems(
    tables: Sequence[TableTask], problems: Callable[[TableTask], Iterable[Problem]]
) -> dict[str, Problem]:
    """The first problem of each table that has any, by name of the task."""
    found = ((task.table, next(iter(of_table(task.table, problems(task))), None)) for task in tables)
    return {table: problem for table, problem in found if problem}


def existing_table(task: TableTask, location: str) -> Iterator[Problem]:
    """Why the first copy cannot have the name of a table that belongs to no replicator."""
    if not task.rule.snapshot.takes_over:
        yield foreign_table(location)
    elif problem := other_values(task.rule, task.schema, location):
        yield problem


def foreign_table(location: str) -> Problem:
    do = "choose another tables.target, or drop the table; an existing table is never overwritten"
    found = "no commit of this replicator"
    return Problem("TGT012", "the target table belongs to something else", location, found, do=do)


def lost_rows(where: str, found: Sequence[str]) -> Problem:
    return Problem(
        "TGT101",
        "the server deletes rows of the table, or the whole table, when a time is over",
        where,
        ", ".join(found),
        "no expiration of a table, its partitions or its rows",
        do="remove it by ALTER TABLE (SET OPTIONS to NULL, DROP ROW DELETION POLICY), then copy the table again, since"
        " rows may be gone: airflow cdc resync",
        data="nothing was written to it; its changes are kept in the change log",
    )


def rows_do_not_fit(table: str, location: str, found: str) -> Blocked:
    """The error of a copy whose columns the table that it shares with others does not have."""
    return Blocked.of(
        "TGT090",
        f"the rows of {table} do not fit into the table that it shares with others",
        where=location,
        found=found,
        allowed="equal keys, and equal types of the columns that both have",
        do="cast or exclude the column (`columns`), or copy all source tables of this target into a new `target` once "
        "they are equal",
        data="the rows of all source tables are unchanged; the change log keeps what is not applied",
    )


def nearest_existing_folder(path: str | Path) -> Path:
    """The folder itself, or the existing folder in which it would be created."""
    return Path(path) if Path(path).exists() else nearest_existing_folder(Path(path).parent)

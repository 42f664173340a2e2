"""What one table of a database can have. ``check`` and each run ask the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.spec.selection import all_but_one
from airflow_cdc_provider.core.table.equal_names import equal_names
from airflow_cdc_provider.core.table.schema import Kind, TableSchema
from airflow_cdc_provider.targets.common_checks import check_definition, check_names, document_problems
from airflow_cdc_provider.targets.database.sql import Sql, column_list, staged_column_list

TOO_LONG = "choose another tables.target, or exclude the columns"
AS_TEXT = "text"
"""The value of the option ``json`` that keeps the text of a document."""


@runtime_checkable
class StoresDocuments(Protocol):
    """A database that can have documents in a type of its own. ``json``: the option."""

    json: str


@dataclass(frozen=True)
class Limits:
    """``name``: the longest one, in bytes, or in characters. ``no_name``: what no name has. ``columns``: of a table;
    ``key_columns`` and ``key_bytes``: of a key. 0: as many as there are."""

    name: int
    in_characters: bool = False
    no_name: re.Pattern[str] | None = None
    reserved_columns: frozenset[str] = frozenset()
    columns: int = 0
    key_columns: int = 0
    key_bytes: int = 0

    def is_too_long(self, name: str) -> bool:
        return len(name if self.in_characters else name.encode()) > self.name

    @property
    def longest(self) -> str:
        return f"{self.name} {'characters' if self.in_characters else 'bytes'}"


@runtime_checkable
class MeasuresKeys(Protocol):
    """The dialect of a database whose keys end at a number of bytes."""

    def key_bytes(self, schema: TableSchema) -> int:
        """The most that a key of these columns can have."""


def limit_problems(limits: Limits, sql: Sql, task: TableTask) -> Iterator[Problem]:
    """What keeps every table of the database from holding the copy."""
    yield from check_definition(task, "Spark")
    yield from _name_problems(limits, task)
    yield from _equal_names(sql, task)
    yield from document_problems(task, rewritten_documents(sql, task.schema))
    yield from _size_problems(limits, sql, task)


def _name_problems(limits: Limits, task: TableTask) -> Iterator[Problem]:
    names = (task.target, *task.schema.names)

    def omitted(wrong: list[str]) -> tuple[str, ...]:
        return () if task.target in wrong else tuple(wrong)

    if too_long := [name for name in names if limits.is_too_long(name)]:
        found, columns = ", ".join(too_long), omitted(too_long)
        yield Problem("TGT054", "names are too long", task.table, found, limits.longest, TOO_LONG, columns=columns)
    if impossible := [name for name in names if limits.no_name and limits.no_name.search(name)]:
        found, columns = ", ".join(map(repr, impossible)), omitted(impossible)
        yield Problem("TGT095", "the target allows no such names", task.table, found, do=TOO_LONG, columns=columns)
    yield from check_names(task, limits.reserved_columns)


def _equal_names(sql: Sql, task: TableTask) -> Iterator[Problem]:
    """Beside those that are equal in lower case: a target may fold names in a way of its own."""
    groups = equal_names(task.schema.names, sql.quoted)
    equal = [group for group in groups if len({name.lower() for name in group}) > 1]
    if equal:
        found, do = ", ".join(name for group in equal for name in group), "exclude all but one in tables.columns"
        columns = tuple(name for group in equal for name in all_but_one(group, task.schema.key))
        what, allowed = "column names differ only in case", "names that are different in the target"
        yield Problem("TGT014", what, task.table, found, allowed, do, columns=columns)


def rewritten_documents(sql: Sql, schema: TableSchema) -> tuple[str, ...]:
    """As ``RewritesDocuments``. In a key documents are texts."""
    if not isinstance(sql, StoresDocuments) or sql.json == AS_TEXT:
        return ()
    return tuple(
        column.name for column in schema.columns if column.type.kind is Kind.JSON and column.name not in schema.key
    )


def _size_problems(limits: Limits, sql: Sql, task: TableTask) -> Iterator[Problem]:
    schema, soft = task.schema, task.rule.on_delete is OnDelete.SOFT
    most = max(len(column_list(sql, schema, soft)), len(staged_column_list(sql, schema)))
    if limits.columns and most > limits.columns:
        what, do = "a table has too many columns for the target", "exclude columns in tables.columns"
        found, allowed = f"{most:,} with those of the provider", f"{limits.columns:,}"
        yield Problem("TGT058", what, task.table, found, allowed, do)
    if limits.key_columns and len(schema.key) > limits.key_columns:
        what, do = "a key has too many columns for the target", "set another tables.key"
        yield Problem("TGT058", what, task.table, f"{len(schema.key)}", f"{limits.key_columns}", do)
    elif isinstance(sql, MeasuresKeys) and (length := sql.key_bytes(schema)) > limits.key_bytes:
        what, do = "a key is too long for the target", "set another tables.key, or leave its long columns out"
        yield Problem("TGT096", what, task.table, f"{length:,} bytes", f"{limits.key_bytes:,}", do)

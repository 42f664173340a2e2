"""The identities of tables in a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.control.observe import _with_identity
from airflow_cdc_provider.core.decisions.facts import LogFacts, TableFacts
from airflow_cdc_provider.core.errors import SourceUnavailable, SourceUnreachable
from airflow_cdc_provider.core.table.identity import ColumnIdentity, TableIdentity, TablePartition, UnloggedChanges
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from tests.connectors.table_tasks import table_task

SCHEMA = TableSchema("s.t", (Column("id", LogicalType(Kind.INT32), False),), ("id",))


def identity(file: str) -> TableIdentity:
    return TableIdentity("1", {"id": ColumnIdentity(1, "int")}, 1, partitions={"1": TablePartition("t", file)})


class Failing:
    """A source whose queries of one table end with an error."""

    def __init__(self, error: SourceUnavailable) -> None:
        self.error = error

    def identities(self, tables: object) -> dict[str, TableIdentity]:
        return {}

    def not_streamed(self, *arguments: Any, **named: Any) -> UnloggedChanges:
        raise self.error


def facts() -> TableFacts:
    task = table_task([SCHEMA], "s.t", SCHEMA)
    assert task.control is not None
    return TableFacts(replace(task, control=replace(task.control, identity=identity("a"))))


def test_a_table_whose_changes_cannot_be_queried_fails_alone() -> None:
    source = Failing(SourceUnavailable.of("CON013", "the statement took too long"))
    found = _with_identity(source, facts(), identity("b"), LogFacts("log"))
    assert found.problem is not None and found.problem.code == "CON013"
    with pytest.raises(SourceUnreachable):
        _with_identity(Failing(SourceUnreachable.of("CON010", "x")), facts(), identity("b"), LogFacts("log"))

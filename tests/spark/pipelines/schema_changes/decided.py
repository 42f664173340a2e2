"""A replicator from PostgreSQL or MariaDB into any kind of target; policies and operators decide about its tables."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Staging, TableRule
from tests.spark.databases import Database
from tests.spark.pipelines.schema_changes.reported.databases import (
    MAKE,
    ChangingDatabase,
    ChangingPostgres,
    changing_mariadb,
    changing_postgres,
)
from tests.spark.pipelines.schema_changes.statements import SAME, StatementsPipeline, Truth
from tests.spark.targets_of_kinds import rows_of, target_of_kind

NAME = "decided"
FROM_POSTGRES = [("postgres", kind) for kind in ("postgres", "mysql", "iceberg", "delta with features")]
FROM_MARIADB = [("mysql", kind) for kind in ("mysql", "postgres", "iceberg", "delta with features")]
Sides = tuple[str, str]
"""The types of source and target."""


@dataclass(kw_only=True)
class DecidedPipeline(StatementsPipeline):
    source: ChangingDatabase
    database: Database | None

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.source.info, *([self.database.connection] if self.database else []))

    def name(self, table: str) -> str:
        return f"{self.schema}.{table}"

    def at_source(self, table: str, *statements: str) -> None:
        for statement in statements:
            self.source.execute(statement.replace("{t}", table))

    def truth(self, table: str) -> Truth:
        names, rows = self.source.fetch(f"SELECT * FROM {table}")
        return names, Counter(tuple(None if value is None else str(value) for value in row) for row in rows)

    def _copy(self, table: str) -> Iterator[dict[str, Any]]:
        replicator = self.replicator()
        return rows_of(replicator.targets.only, self.target(self.name(table)), self.database, self.spark)


def in_every_run(*sides: Sides) -> list[ParameterSet]:
    """From PostgreSQL into PostgreSQL; the others nightly."""
    first = FROM_POSTGRES[0]
    return [pytest.param(one, marks=() if one == first else pytest.mark.nightly, id="-".join(one)) for one in sides]


P = TypeVar("P", bound=DecidedPipeline)


@contextlib.contextmanager
def decided_pipeline(
    made: type[P], rules: Sequence[TableRule], tables: Sequence[str], folder: Path, request: pytest.FixtureRequest
) -> Iterator[P]:
    """``rules``: of tables without their schema. ``tables``: that the source has. ``request.param``: the sides."""
    kind, target_kind = request.param
    with (
        _changing(kind, request) as source,
        target_of_kind(target_kind, NAME, folder, request) as (target, database),
    ):
        definition = Definition(
            name=NAME,
            source=source.source,
            target=target,
            tables=tuple(replace(rule, source=f"{source.schema}.{rule.source}") for rule in rules),
            staging=Staging(f"{folder}/staging"),
        )
        spark = request.getfixturevalue("spark")
        pipeline = made(folder, spark, definition, source.schema, source=source, database=database)
        for table in tables:
            pipeline.at_source(table, *MAKE)
        pipeline.run_until_idle()
        assert {table for table in tables if pipeline.outcome(table) == SAME} == set(tables)
        yield pipeline


def _changing(kind: str, request: pytest.FixtureRequest) -> contextlib.AbstractContextManager[ChangingDatabase]:
    if kind == "postgres":
        return changing_postgres(request.getfixturevalue("postgres"), ChangingPostgres)
    return changing_mariadb(request.getfixturevalue("mariadb"))

"""What the contract suite needs of a target beside the product: how another client reads, writes and restores it,
and how its answers are lost. A new target joins with one kit in ``KITS``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from tests.spark.contract.bigquery_kit import bigquery_kit
from tests.spark.contract.database_kit import database_kit
from tests.spark.contract.delta_kit import DeltaKit
from tests.spark.contract.iceberg_kit import IcebergKit
from tests.spark.contract.iceberg_rest_kit import iceberg_on_s3_kit
from tests.spark.contract.redshift_kit import redshift_kit, snapshot_kit
from tests.spark.contract.snowflake_kit import external_stage_kit, snowflake_kit
from tests.spark.contract.spanner_kit import spanner_kit


class TargetKit(Protocol):
    """One table ``t`` of one target. ``session`` has no catalogs of other kits. ``jars``: the groups that a driver
    needs.

    ``keeps_versions``: an older version can be read, and restored alone; the target's own history contains it. Without,
    a restore brings a backup back, with its cursor. ``keeps_cuts``: a published cut can be read after its tables have
    moved on, until a new copy replaces one. ``chores``: the upkeep that can be due. ``has_odd_numbers``: its
    floats have NaN and a negative zero; ``keeps_zeros_apart``: also where a statement compares rows. ``before_commit``:
    the last failpoint at which others can change the table."""

    kind: str
    engine: EngineMode
    jars: tuple[str, ...]
    keeps_versions: bool
    keeps_cuts: bool
    chores: frozenset[str]
    has_odd_numbers: bool
    keeps_zeros_apart: bool
    before_commit: str
    target: Target
    secrets: Secrets
    session: SparkSession

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Read by another library, in no order."""

    def write(self, statement: str) -> None:
        """As another client: SQL in which ``{t}`` stands for the table."""

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        """Its window and the table's rows, as a reader of the published cut of ``hand`` sees them; None if there is
        no cut, or if the tables have left it and cannot be read as of it."""

    def compact(self) -> None:
        """Upkeep by another client: it changes no row."""

    def version(self) -> Any:
        """The version for ``restore``."""

    def restore(self, version: Any) -> None:
        """Restore the table, as another client."""

    def drop(self) -> None: ...

    def create(self) -> None:
        """A table of another client at the location of the table."""

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        """Do something once, just before the next merge commits."""

    def lose(self, reply: bool) -> AbstractContextManager[None]:
        """The next commit of a merge, or its reply, is lost."""


Fixture = Callable[[str], Any]
"""A fixture of the session, by its name: the servers that some kits need."""

OpenKit = Callable[[SparkSession, Path, Fixture], AbstractContextManager[TargetKit]]

TARGETS: dict[str, OpenKit] = {
    "bigquery": bigquery_kit,
    "delta": lambda spark, folder, _: contextlib.nullcontext(DeltaKit(spark, folder)),
    "iceberg": lambda spark, folder, _: contextlib.nullcontext(IcebergKit(spark, folder)),
    "iceberg on s3": iceberg_on_s3_kit,
    "mysql": partial(database_kit, "mysql"),
    "postgres": partial(database_kit, "postgres"),
    "redshift": redshift_kit,
    "redshift with isolation by snapshots": snapshot_kit,
    "snowflake": snowflake_kit,
    "snowflake by external stage": external_stage_kit,
    "spanner": spanner_kit,
}
IN_SPARK = " in Spark"


@contextlib.contextmanager
def in_spark(open_kit: OpenKit, spark: SparkSession, folder: Path, fixture: Fixture) -> Iterator[TargetKit]:
    with open_kit(spark, folder, fixture) as kit:
        kit.engine = EngineMode.SPARK
        yield kit


KITS: dict[str, OpenKit] = {
    **TARGETS,
    **{f"{name}{IN_SPARK}": partial(in_spark, open_kit) for name, open_kit in TARGETS.items()},
}
"""Every target with the engine that fits the work, and with Spark for all of it."""

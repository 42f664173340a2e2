"""What the contract suite needs to know of a target that the product does not tell it: how somebody else reads it,
writes to it, takes it back, and how its answers get lost. A new target joins by one kit in ``KITS``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections import Secrets
from airflow_cdc_provider.core.definition import Target
from tests.spark.contract.delta_kit import DeltaKit
from tests.spark.contract.iceberg_kit import IcebergKit


class TargetKit(Protocol):
    """One table ``t`` of one target in a place of its own. ``session`` knows nothing of other kits' catalogs. ``jars``
    are the groups a driver needs."""

    kind: str
    jars: tuple[str, ...]
    target: Target
    secrets: Secrets
    session: SparkSession

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """By somebody else's library, in no order."""

    def write(self, statement: str) -> None:
        """As another client: SQL in which ``{t}`` stands for the table."""

    def compact(self) -> None:
        """A commit of somebody else that changes no row."""

    def version(self) -> Any: ...

    def restore(self, version: Any) -> None:
        """Take the table back, as another client."""

    def drop(self) -> None: ...

    def create(self) -> None:
        """A table of somebody else at our place."""

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        """Do something once, just before the next merge commits."""

    def lose(self, reply: bool) -> contextlib.AbstractContextManager[None]:
        """The next commit of a merge is lost on its way, or its reply is."""


KITS: dict[str, Callable[[SparkSession, Path], TargetKit]] = {"delta": DeltaKit, "iceberg": IcebergKit}

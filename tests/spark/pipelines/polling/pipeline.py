"""A replicator of polled tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.spec.definition import Definition, Reconcile, Source, Staging, TableRule, Target
from tests.spark.pipelines.pipeline import Pipeline

Rows = dict[Any, dict[str, Any]]


@dataclass
class PollingPipeline(Pipeline):
    """``truth``: table → its rows at the source, by key, without technical columns."""

    connection: ConnectionInfo
    key: str
    truth: Callable[[str], Rows]

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.connection)

    def rows(self, table: str) -> Rows:
        return self.copied_rows(table, self.key)

    def differences(self) -> list[str]:
        """Keys whose rows differ from those of the source; columns that ``truth`` does not name do not count."""
        found = []
        for table in self.tables:
            truth, rows = self.truth(table), self.rows(table)
            found += [f"{table} {key}: on one side only" for key in truth.keys() ^ rows.keys()]
            for key in truth.keys() & rows.keys():
                ours = {name: rows[key][name] for name in truth[key]}
                found += [] if ours == truth[key] else [f"{table} {key}: {ours}, in truth {truth[key]}"]
        return found


def definition(folder: Path, kind: str, options: dict[str, Any], rules: Sequence[TableRule]) -> Definition:
    return Definition(
        name="polled",
        source=Source(kind, "source", Reconcile.MANUAL, options),
        target=Target("delta", f"{folder}/lake"),
        tables=tuple(rules),
        staging=Staging(f"{folder}/staging"),
    )

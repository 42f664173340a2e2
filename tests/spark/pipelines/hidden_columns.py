"""The same check for every kind of source: a copied table gets hashed, masked, cast and renamed columns."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.change_log import window_folder
from airflow_cdc_provider.core.spec.columns import Columns
from tests.spark.pipelines.pipeline import Pipeline

KEY = "0123456789abcdef0123456789abcdef"
Row = dict[str, Any]


def hashed(value: object) -> str | None:
    """An independent implementation, for texts and integers."""
    return None if value is None else hmac.new(KEY.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def with_hash_key(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(pipeline)
    own = kind.secrets.fget  # type: ignore[attr-defined]
    key = ConnectionInfo("hashes", password=KEY)
    monkeypatch.setattr(kind, "secrets", property(lambda self: replace(own(self), hash=key)))
    pipeline.definition = replace(pipeline.definition, hash_connection="hashes")


@dataclass
class HiddenColumns:
    """``truth``: the rows of a table at the source; ``expected``: such a row as the copy must have it. ``key``: the
    column of the copy."""

    pipeline: Pipeline
    truth: Callable[[str], dict[Any, Row]]
    expected: Callable[[Row], Row]
    key: str
    clear: str
    window: int = 0

    def hide(self, columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
        """The tables are blocked until they are copied again."""
        pipeline = self.pipeline
        with_hash_key(pipeline, monkeypatch)
        rules = tuple(replace(rule, columns=columns) for rule in pipeline.definition.tables)
        pipeline.definition = replace(pipeline.definition, tables=rules)
        dag_run = pipeline.run()
        assert "DEF040" in str(dag_run.problems), dag_run.problems
        pipeline.record_command(CommandKind.RESYNC, *pipeline.tables, approve_deletes=True)
        pipeline.run_successfully()
        pipeline.run_until_idle()
        self.window = pipeline.replicator().log.sealed()

    def differences(self) -> list[str]:
        found = []
        for table in self.pipeline.tables:
            rows = self.pipeline.copied_rows(table, self.key)
            truth = {row[self.key]: row for row in map(self.expected, self.truth(table).values())}
            found += [f"{table} {key}: on one side only" for key in truth.keys() ^ rows.keys()]
            for key in truth.keys() & rows.keys():
                ours = {name: rows[key][name] for name in truth[key]}
                found += [] if ours == truth[key] else [f"{table} {key}: {ours}, in truth {truth[key]}"]
        return found

    def clear_windows(self) -> list[str]:
        """Files of the change log, written since, with a clear value."""
        store = Path(self.pipeline.replicator().log.store.root)
        return [
            str(path)
            for path in store.glob("windows/*/*/*/*.parquet")
            if path.relative_to(store).as_posix() > window_folder(self.window + 1)
            and self.clear in repr(pq.ParquetFile(path).read().to_pylist())
        ]

    def verify(self) -> None:
        pipeline = self.pipeline
        pipeline.record_command(CommandKind.VERIFY, *pipeline.tables)
        results = pipeline.results(pipeline.run_successfully(), "verify")
        assert len(results) == len(pipeline.tables)
        assert all(one.detail["identical"] for one in results.values()), results

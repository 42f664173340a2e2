"""The versions and changes of a table of each kind of source in each target: its first rows, one update and one new row
are read."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.states import TableState
from tests.spark.pipelines.schema_changes.reported.changing_source import (
    SAME,
    Case,
    ChangingSource,
    ReportedPipeline,
    reported_pipeline,
    rule_of,
)
from tests.spark.pipelines.schema_changes.reported.test_reported_changes import kit
from tests.spark.targets_of_kinds import FEATURES, ICEBERG, MYSQL, POSTGRES

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

VERSIONS, CHANGES = Case(TableChange.ADD_COLUMN, OnChange.APPLY), Case(TableChange.WIDEN, OnChange.APPLY)
WITHOUT_SCHEMA = Case(TableChange.WIDEN, OnChange.ASK)
"""For a source that reports no added column."""


def with_history(source: ChangingSource, case: Case) -> TableRule:
    """A poll delivers rows and no changes, so that it has versions only."""
    rule = rule_of(source, case)
    if case is CHANGES:
        return replace(rule, history=History.SCD2 if source.source.type == "jdbc_poll" else History.LOG)
    return replace(rule, history=History.SCD2, history_target="versions")


def rows(pipeline: ReportedPipeline, target: str) -> dict[str, list[dict[str, Any]]]:
    """By key; those of a key in the order of the changes."""
    found, key = defaultdict(list), pipeline.kit.key
    for row in sorted(pipeline.rows(target), key=lambda row: (row[key], row["_cdc_sequence"])):
        found[row[key]].append(row)
    return found


@pytest.mark.parametrize("target", [FEATURES, ICEBERG, POSTGRES, MYSQL])
@pytest.mark.parametrize("source", ["mysql", "salesforce", "debezium", "ydb", "sqlserver", "jdbc_poll"])
def test_a_history_has_what_the_source_reports(
    source: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = WITHOUT_SCHEMA if source == "ydb" else VERSIONS
    with (
        kit(source, tmp_path, request) as made,
        reported_pipeline(tmp_path, made, target, [case, CHANGES], request, with_history) as pipeline,
    ):
        assert pipeline.outcome(case) == SAME, pipeline.shown(case)
        if pipeline.row(CHANGES).state is TableState.BLOCKED:
            pipeline.record_command(CommandKind.RESYNC, made.name(CHANGES))
            pipeline.run_until_idle()
        assert pipeline.row(CHANGES).state is TableState.REPLICATING, pipeline.shown(CHANGES)
        a, z = ("A__c", "Z__c") if source == "salesforce" else ("a", "z")
        versions = rows(pipeline, "versions")
        assert [[int(row[a]) for row in of_key] for of_key in versions.values()] == [[10, 11], [20], [30], [40]]
        assert [of_key[-1]["_cdc_is_current"] for of_key in versions.values()] == [True] * 4
        assert {row.get(z) for row in itertools.chain(*versions.values())} == {None}
        (first, second), *_ = versions.values()
        assert not first["_cdc_is_current"] and first["_cdc_valid_to"] == second["_cdc_valid_from"]
        changes = rows(pipeline, pipeline.target(made.name(CHANGES)))
        assert [[int(row[a]) for row in of_key] for of_key in changes.values()] == [[10, 11], [20], [30], [40]]

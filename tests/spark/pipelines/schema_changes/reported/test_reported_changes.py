"""Each change at each source: the outcome is what the source declares and the policy says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.reported_changes import Report, TableChange
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.reference.source_changes import CHOICES, declarations, expected_code
from tests.spark.pipelines.schema_changes.reported.changing_source import (
    SAME,
    Case,
    ChangingSource,
    ReportedPipeline,
    reported_pipeline,
)
from tests.spark.pipelines.schema_changes.reported.databases import (
    ChangingPostgres,
    PolledPostgres,
    changing_mariadb,
    changing_postgres,
)
from tests.spark.pipelines.schema_changes.reported.feeds import ChangingDatastream, ChangingDebezium, ChangingYdb
from tests.spark.pipelines.schema_changes.reported.salesforce import (
    ChangingSalesforce,
    PolledSalesforce,
    changing_salesforce,
)
from tests.spark.pipelines.schema_changes.reported.sqlserver import changing_sqlserver

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DECLARED = declarations()
NOT_MADE = {
    "salesforce": {TableChange.FILLED_COLUMN, TableChange.REWRITE, TableChange.TRUNCATE, TableChange.RENAME_TABLE},
    "sqlserver": {TableChange.CHANGE_KEY, TableChange.RENAME_TABLE},
}
"""Changes that the sandbox and the simulator do not have."""
NOT_MADE["salesforce_poll"] = NOT_MADE["salesforce"]
FEEDS = {
    "datastream": partial(ChangingDatastream, format="datastream"),
    "debezium": partial(ChangingDebezium, format="debezium", topic_prefix="p"),
    "ydb": partial(ChangingYdb, format="ydb"),
}
IN_EVERY_RUN = {("debezium", TableChange.WIDEN, OnChange.APPLY)}


def parameters() -> Iterator[ParameterSet]:
    for source, declared in DECLARED.items():
        for change in TableChange:
            if declared.of(change) is Report.IMPOSSIBLE or change in NOT_MADE.get(source, ()):
                continue
            for choice in CHOICES:
                marks = () if (source, change, choice) in IN_EVERY_RUN else pytest.mark.nightly
                yield pytest.param(source, Case(change, choice), marks=marks, id=f"{source}-{change}-{choice}")


def answers() -> Iterator[ParameterSet]:
    """Of an operator, who says that a column was renamed, or that the proposed changes are right."""
    asked = {
        TableChange.ADD_COLUMN: Answer.APPLY,
        TableChange.DROP_COLUMN: Answer.APPLY,
        TableChange.RENAME_COLUMN: Answer.RENAME,
        TableChange.WIDEN: Answer.APPLY,
    }
    for source in ("debezium", "datastream", "salesforce"):
        for change, answer in asked.items():
            marks = () if (source, answer) == ("debezium", Answer.RENAME) else pytest.mark.nightly
            case = Case(change, OnChange.ASK, answer)
            yield pytest.param(source, case, marks=marks, id=f"{source}-{change}-{answer}")


def kit(source: str, folder: Path, request: pytest.FixtureRequest) -> AbstractContextManager[ChangingSource]:
    fixture: Callable[[str], Any] = request.getfixturevalue
    match source:
        case "postgres":
            return changing_postgres(fixture("postgres"), ChangingPostgres)
        case "jdbc_poll":
            return changing_postgres(fixture("postgres"), PolledPostgres)
        case "mysql":
            return changing_mariadb(fixture("mariadb"))
        case "salesforce":
            return changing_salesforce(ChangingSalesforce)
        case "salesforce_poll":
            return changing_salesforce(PolledSalesforce)
        case "sqlserver":
            return changing_sqlserver(folder, fixture("spark"))
        case _:
            return contextlib.nullcontext(FEEDS[source](folder))


@pytest.fixture(scope="module")
def pipelines(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], ReportedPipeline]]:
    """By source, each with all of its cases of this session."""
    specs = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    chosen = [(spec.params["source"], spec.params["case"]) for spec in specs if spec and "case" in spec.params]
    opened: dict[str, ReportedPipeline] = {}
    with contextlib.ExitStack() as stack:

        def opener(source: str) -> ReportedPipeline:
            if source not in opened:
                folder = tmp_path_factory.mktemp(source)
                cases = [case for name, case in chosen if name == source]
                made = stack.enter_context(kit(source, folder, request))
                opened[source] = stack.enter_context(reported_pipeline(folder, spark, made, cases))
            return opened[source]

        yield opener


@pytest.mark.parametrize(("source", "case"), list(parameters()))
def test_the_outcome_is_the_declared_one(pipelines: Callable[[str], ReportedPipeline], source: str, case: Case) -> None:
    pipeline, report = pipelines(source), DECLARED[source].of(case.change)
    outcome, code = pipeline.outcome(case), expected_code(case.change, report, case.choice)
    if code:
        assert code in outcome.split(), (report, outcome, pipeline.shown(case))
    elif report in (Report.NONE, Report.PARTIAL):
        assert pipeline.row(case).state is TableState.REPLICATING, outcome
    else:
        assert outcome == SAME, (report, pipeline.shown(case))


@pytest.mark.parametrize(("source", "case"), list(answers()))
def test_an_answer_is_carried_out(pipelines: Callable[[str], ReportedPipeline], source: str, case: Case) -> None:
    pipeline = pipelines(source)
    assert pipeline.outcome(case) == SAME, pipeline.row(case)

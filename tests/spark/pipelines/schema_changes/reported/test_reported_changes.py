"""Each change at each source, under each policy, into each target: the outcome is the one in the generated page."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.reported_changes import Report, TableChange
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.reference.schema_changes import expected_code
from airflow_cdc_provider.reference.source_changes import CHOICES, WITH_STATEMENTS, declarations
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
from tests.spark.pipelines.schema_changes.reported.feeds import (
    ChangingDatastream,
    ChangingDebezium,
    ChangingDebeziumWithStatements,
    ChangingYdb,
)
from tests.spark.pipelines.schema_changes.reported.salesforce import (
    ChangingSalesforce,
    PolledSalesforce,
    changing_salesforce,
)
from tests.spark.pipelines.schema_changes.reported.sqlserver import changing_sqlserver
from tests.spark.targets_of_kinds import DELTA, FEATURES, ICEBERG, MYSQL, POSTGRES

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DECLARED = declarations()
NOT_MADE = {
    "salesforce": {TableChange.FILLED_COLUMN, TableChange.REWRITE, TableChange.TRUNCATE, TableChange.RENAME_TABLE},
    "sqlserver": {TableChange.CHANGE_KEY, TableChange.RENAME_TABLE},
}
"""Changes that the sandbox and the simulator do not have."""
NOT_MADE["salesforce_poll"] = NOT_MADE["salesforce"]
STATEMENTS = f"debezium{WITH_STATEMENTS}"
FEEDS = {
    "datastream": partial(ChangingDatastream, format="datastream"),
    "debezium": partial(ChangingDebezium, format="debezium", topic_prefix="p"),
    STATEMENTS: partial(ChangingDebeziumWithStatements, format="debezium", topic_prefix="p"),
    "ydb": partial(ChangingYdb, format="ydb"),
}
ALTERING = (FEATURES, ICEBERG, POSTGRES, MYSQL)
"""Targets that alter columns in place."""
RENAMES = (TableChange.RENAME_COLUMN, TableChange.RENAME_TABLE)
Opener = Callable[[str, str], ReportedPipeline]


def parameter(source: str, target: str, case: Case, in_every_run: bool) -> ParameterSet:
    marks = () if in_every_run else pytest.mark.nightly
    return pytest.param(source, target, case, marks=marks, id=f"{source}-{target}-{case}")


def parameters() -> Iterator[ParameterSet]:
    once = {
        ("debezium", FEATURES, Case(TableChange.WIDEN, OnChange.APPLY)),
        *((STATEMENTS, FEATURES, Case(one, OnChange.APPLY)) for one in RENAMES),
    }
    for (source, declared), target in itertools.product(DECLARED.items(), (DELTA, *ALTERING)):
        for change, choice in itertools.product(TableChange, CHOICES):
            if declared.of(change) is not Report.IMPOSSIBLE and change not in NOT_MADE.get(source, ()):
                case = Case(change, choice)
                yield parameter(source, target, case, (source, target, case) in once)


def answers() -> Iterator[ParameterSet]:
    """Of an operator, who says that a column was renamed, or that the proposed changes are right."""
    asked = {
        TableChange.ADD_COLUMN: Answer.APPLY,
        TableChange.DROP_COLUMN: Answer.APPLY,
        TableChange.RENAME_COLUMN: Answer.RENAME,
        TableChange.WIDEN: Answer.APPLY,
    }
    certain = {TableChange.RENAME_COLUMN: Answer.APPLY, TableChange.RENAME_TABLE: Answer.APPLY}
    once = {("debezium", FEATURES, Answer.RENAME), (STATEMENTS, FEATURES, Answer.APPLY)}
    of_sources = {"debezium": asked, "datastream": asked, "salesforce": asked, STATEMENTS: certain}
    for (source, of_source), target in itertools.product(of_sources.items(), ALTERING):
        for change, answer in of_source.items():
            case = Case(change, OnChange.ASK, answer)
            yield parameter(source, target, case, (source, target, answer) in once)


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
def pipelines(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """The last one that was asked for stays open, with all cases of its source and target in this session."""
    specs = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    chosen = [spec.params for spec in specs if spec and "case" in spec.params]
    opened: dict[tuple[str, str], ReportedPipeline] = {}
    with contextlib.ExitStack() as stack:

        def opener(source: str, target: str) -> ReportedPipeline:
            if (source, target) not in opened:
                stack.close()
                opened.clear()
                folder = tmp_path_factory.mktemp(f"{source}_{target}".replace(" ", "_"))
                cases = [one["case"] for one in chosen if (one["source"], one["target"]) == (source, target)]
                made = stack.enter_context(kit(source, folder, request))
                opened[source, target] = stack.enter_context(reported_pipeline(folder, made, target, cases, request))
            return opened[source, target]

        yield opener


@pytest.mark.parametrize(("source", "target", "case"), list(parameters()))
def test_the_outcome_is_the_declared_one(pipelines: Opener, source: str, target: str, case: Case) -> None:
    pipeline, report = pipelines(source, target), DECLARED[source].of(case.change)
    code = expected_code(case.change, report, case.choice, pipeline.replicator().targets.only)
    outcome = pipeline.outcome(case)
    if code:
        assert code in outcome.split(), (report, outcome, pipeline.shown(case))
    elif report in (Report.NONE, Report.PARTIAL):
        assert pipeline.row(case).state is TableState.REPLICATING, outcome
    else:
        assert outcome == SAME, (report, pipeline.shown(case))


@pytest.mark.nightly
@pytest.mark.parametrize(("source", "target", "case"), list(answers()))
def test_an_answer_is_carried_out(pipelines: Opener, source: str, target: str, case: Case) -> None:
    pipeline = pipelines(source, target)
    assert pipeline.outcome(case) == SAME, pipeline.row(case)

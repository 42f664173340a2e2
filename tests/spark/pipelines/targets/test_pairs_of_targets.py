"""One replicator of each kind of source with two targets of different kinds: both have what the source reports, and the
outage of one does not stop the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_cdc_provider.core.connections.connection_info import Secrets, TargetSecrets
from airflow_cdc_provider.core.spec.definition import Definition, Staging
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.copies import copy_name
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.ports import free_ports
from tests.spark.databases import Database
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.pipelines.schema_changes.reported.changing_source import (
    Case,
    ChangingSource,
    Rows,
    copied_texts,
    rule_of,
)
from tests.spark.pipelines.schema_changes.reported.test_reported_changes import kit
from tests.spark.targets_of_kinds import FEATURES, ICEBERG, MYSQL, POSTGRES, rows_of, target_of_kind

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

FIRST, SECOND = "first", "second"
ADDED, WIDENED = Case(TableChange.ADD_COLUMN, OnChange.APPLY), Case(TableChange.WIDEN, OnChange.APPLY)
UNSEEN, DROPPED = Case(TableChange.WIDEN, OnChange.ASK), Case(TableChange.DROP_COLUMN, OnChange.APPLY)
CHANGES = {"ydb": (UNSEEN, WIDENED), "sqlserver": (ADDED, DROPPED)}
"""Of two tables: one that both targets follow at once, one in the outage of the second target. YDB reports no added
column, and a widened one stops tables of SQL Server."""
PAIRS = [(ICEBERG, POSTGRES), (FEATURES, MYSQL), (MYSQL, POSTGRES), (FEATURES, ICEBERG)]


@dataclass(kw_only=True)
class PairPipeline(Pipeline):
    """``cases``: as in ``CHANGES``. ``databases``: by the name of the target, if it is one. ``down``: the second one
    does not answer."""

    kit: ChangingSource
    cases: tuple[Case, Case]
    databases: Mapping[str, Database | None]
    down: bool = False

    @property
    def secrets(self) -> Secrets:
        secrets = {
            name: TargetSecrets(one.connection) if one else TargetSecrets() for name, one in self.databases.items()
        }
        if self.down and (second := self.databases[SECOND]):
            secrets[SECOND] = TargetSecrets(replace(second.connection, port=free_ports(1)[0]))
        return replace(self.kit.secrets, targets=secrets)

    def change(self, case: Case) -> None:
        self.kit.change(case)
        self.kit.before_run()

    def copied(self, case: Case, target: str) -> Rows:
        name = self.target(copy_name(self.kit.name(case), target))
        found = rows_of(self.replicator().targets.named(target), name, self.databases[target], self.spark)
        return copied_texts(self.kit, case, found)

    def assert_exact(self, *targets: str) -> None:
        for case in self.cases:
            truth = self.kit.truth(case)
            assert {target: self.copied(case, target) for target in targets} == dict.fromkeys(targets, truth)

    def state(self, case: Case, target: str) -> TableState:
        return self.replicator().state.tables(self.definition.name)[copy_name(self.kit.name(case), target)].state


@contextmanager
def pair_pipeline(
    source: str, kinds: tuple[str, str], folder: Path, request: pytest.FixtureRequest
) -> Iterator[PairPipeline]:
    with ExitStack() as stack:
        made = stack.enter_context(kit(source, folder, request))
        cases = CHANGES.get(source, (ADDED, WIDENED))
        for case in cases:
            made.create(case)
        targets, databases = [], {}
        for name, kind in zip((FIRST, SECOND), kinds, strict=True):
            target, databases[name] = stack.enter_context(target_of_kind(kind, name, folder / name, request))
            targets.append(replace(target, name=name))
        definition = Definition(
            name="pair",
            source=made.source,
            targets=tuple(targets),
            tables=tuple(rule_of(made, case) for case in cases),
            staging=Staging(f"{folder}/staging"),
        )
        spark = request.getfixturevalue("spark")
        made.before_run()
        yield PairPipeline(folder, spark, definition, kit=made, cases=cases, databases=databases)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
@pytest.mark.parametrize("source", ["postgres", "mysql", "salesforce", "debezium", "ydb", "sqlserver", "jdbc_poll"])
def test_both_targets_have_what_the_source_reports(
    source: str, kinds: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with pair_pipeline(source, kinds, tmp_path, request) as pair:
        together, in_an_outage = pair.cases
        pair.run_successfully()
        pair.run_until_idle()
        pair.assert_exact(FIRST, SECOND)
        pair.change(together)
        pair.run_until_idle()
        pair.assert_exact(FIRST, SECOND)
        pair.down = pair.databases[SECOND] is not None
        pair.change(in_an_outage)
        for _ in range(2):  # a window ends where the type changes
            dag_run = pair.run()
            assert "failed" not in dag_run.states.values(), dag_run.problems
        pair.assert_exact(FIRST)
        if pair.down:
            assert pair.state(in_an_outage, SECOND) is TableState.FAILING
            pair.down = False
        pair.run_until_idle()
        pair.assert_exact(FIRST, SECOND)

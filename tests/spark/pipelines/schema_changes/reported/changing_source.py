"""Sources whose tables change in every way, one table per case, and the replicator of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_cdc_provider.control.answers import answer_question, open_questions
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from tests.faults.dag_run import DagRun
from tests.spark.databases import Database
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.targets_of_kinds import rows_of, target_of_kind

Rows = dict[str, dict[str, str | None]]
"""Key → column → value, all as text."""

STEPS = ("snapshot", "extract", "stage", "merge", "verify", "reconcile.resync", "reconcile.replay")
SAME = "same"


@dataclass(frozen=True)
class Case:
    """A change under the policy ``choice`` for every kind of change. ``answer``: to the question about it."""

    change: TableChange
    choice: OnChange
    answer: Answer | None = None

    def __str__(self) -> str:
        return "_".join(filter(None, (self.change, self.choice, self.answer)))

    @property
    def policy(self) -> SchemaPolicy:
        choice = self.choice
        on_drop = OnDrop.DROP if choice is OnChange.APPLY else OnDrop(choice.value)
        return SchemaPolicy(choice, on_drop, choice, choice, choice, choice, choice)


class ChangingSource(ABC):
    """Each table has the columns ``id``, its key, ``a`` and ``k``, integers, and ``v``, a text; and three rows.
    ``key``: the name of its key column."""

    key: ClassVar[str] = "id"

    @property
    @abstractmethod
    def source(self) -> Source: ...

    @property
    @abstractmethod
    def secrets(self) -> Secrets: ...

    @abstractmethod
    def name(self, case: Case) -> str:
        """Of the table in the replicator."""

    @abstractmethod
    def create(self, case: Case) -> None: ...

    @abstractmethod
    def change(self, case: Case) -> None:
        """An update of one row, the change, and a new row."""

    @abstractmethod
    def truth(self, case: Case) -> Rows: ...

    def before_run(self) -> None:  # noqa: B027 - most sources need none
        """Makes what was written visible to a run."""


@dataclass(kw_only=True)
class ReportedPipeline(Pipeline):
    """``database``: of the target, if it is one. ``problems``: table → code → the problem, of all that runs decided and
    steps returned."""

    kit: ChangingSource
    database: Database | None
    problems: defaultdict[str, dict[str, Problem]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def secrets(self) -> Secrets:
        secrets = self.kit.secrets
        return replace(secrets, target=self.database.connection) if self.database else secrets

    def execute(self, dag_run: DagRun) -> DagRun:
        self.kit.before_run()
        executed = super().execute(dag_run)
        for table, problem in self._problems(executed):
            self.problems[table][problem.code] = problem
        return executed

    def run_cases(self, cases: Sequence[Case]) -> None:
        self.run_successfully()
        self._until_quiet(len(cases))
        for case in cases:
            self.kit.change(case)
        self._until_quiet(len(cases))
        questions = open_questions(self.replicator())
        answers = [(case.answer, questions.get(self.kit.name(case))) for case in cases if case.answer]
        for answer, question in answers:
            if question and answer in question.answers:
                answer_question(self.replicator(), question, answer, "ada", "")
        if answers:
            self._until_quiet(len(cases))

    def outcome(self, case: Case) -> str:
        """``same``, the differences, or the codes of a table that is stopped."""
        row = self.row(case)
        if row.state is TableState.BLOCKED:
            return " ".join(sorted(self.problems[self.kit.name(case)]))
        if row.state is not TableState.REPLICATING:
            return f"{row.state}: {row.reason} {row.error}"
        truth, copied = self.kit.truth(case), self._copied(case)
        if truth == copied:
            return SAME
        return f"different: {copied}, in truth {truth}"

    def shown(self, case: Case) -> str:
        return "\n".join(map(str, self.problems[self.kit.name(case)].values()))

    def row(self, case: Case) -> TableRow:
        return self.replicator().state.tables(self.definition.name)[self.kit.name(case)]

    def _until_quiet(self, cases: int) -> None:
        """Until the only work left is to report stopped tables. A run ends at the next change that stops a table."""
        for _ in range(9 + cases):
            if set(self.run().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("runs find work without end")

    def rows(self, target: str) -> list[dict[str, Any]]:
        """Of a target table."""
        return list(rows_of(self.replicator().targets.only, target, self.database, self.spark))

    def _copied(self, case: Case) -> Rows:
        return copied_texts(self.kit, case, self.rows(self.target(self.kit.name(case))))

    def _problems(self, dag_run: DagRun) -> Iterator[tuple[str, Problem]]:
        decision = dag_run.decision
        if decision is None:
            return
        for one in decision.table_decisions:
            if one.problem:
                yield one.table, one.problem
        for problem in decision.unselected:
            yield from ((table, problem) for table in self.tables if table in str(problem))
        for task in STEPS:
            found = self.replicator().run(dag_run.run_id).latest(task, decision.plan.opening)
            for result in found[1].tables if found else ():
                if result.problem:
                    yield result.table, result.problem


def text(value: Any) -> str | None:
    return None if value is None else str(value)


def copied_texts(kit: ChangingSource, case: Case, rows: Iterable[Mapping[str, Any]]) -> Rows:
    """The rows of a target table, in the columns that the source has now."""
    columns = next(iter(kit.truth(case).values()), {})
    return {str(row[kit.key]): {name: text(row.get(name)) for name in columns} for row in rows}


def texts(rows: Mapping[Any, Mapping[str, Any]]) -> Rows:
    return {str(key): {name: text(value) for name, value in row.items()} for key, row in rows.items()}


def rule_of(kit: ChangingSource, case: Case) -> TableRule:
    return TableRule(kit.name(case), schema_changes=case.policy)


@contextmanager
def reported_pipeline(
    folder: Path,
    kit: ChangingSource,
    kind: str,
    cases: Sequence[Case],
    request: pytest.FixtureRequest,
    rule: Callable[[ChangingSource, Case], TableRule] = rule_of,
) -> Iterator[ReportedPipeline]:
    """After all changes. ``kind``: of the target."""
    for case in cases:
        kit.create(case)
    with target_of_kind(kind, "copies", folder, request) as (target, database):
        definition = Definition(
            name="reported",
            source=kit.source,
            target=target,
            tables=tuple(rule(kit, case) for case in cases),
            staging=Staging(f"{folder}/staging"),
        )
        spark = request.getfixturevalue("spark")
        pipeline = ReportedPipeline(folder, spark, definition, kit=kit, database=database)
        pipeline.run_cases(cases)
        yield pipeline

"""The common part of the tests of DDL statements: one table per case, in one replicator of all cases."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from deltalake import DeltaTable

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from tests.delta_tables import read
from tests.faults.worker import request
from tests.spark.pipelines.pipeline import Pipeline

RUN = "{run}"
SAME, STOPPED, SAME_OR_STOPPED = "same", "stopped", "same or stopped"
Texts = tuple[str | None, ...]
Truth = tuple[list[str], Counter[Texts]]
"""Names of the columns, and the number of copies of each row, with values as the server prints them."""


@dataclass(frozen=True)
class Case:
    """``quiet``: the outcome for the copy if no row changes, ``busy``: if rows change before and after. ``make``:
    the statements that create the table. ``rows``: the first one executes after the others. In all of them ``{t}``
    is the table, and ``{run}`` marks a run. ``since``: the first major version of the server that accepts them."""

    name: str
    statements: tuple[str, ...]
    make: tuple[str, ...]
    rows: tuple[str, ...]
    quiet: str = SAME
    busy: str = ""
    number: int = 0
    since: int = 0

    def expected(self, busy: bool) -> str:
        return (self.busy or self.quiet) if busy else self.quiet

    def table(self, busy: bool) -> str:
        return f"t{self.number}_{'busy' if busy else 'quiet'}"

    def phase(self, busy: bool, part: int) -> tuple[str, ...]:
        """The statements before the run among them, or those after it."""
        cut = self.statements.index(RUN) if RUN in self.statements else len(self.statements)
        statements = (self.statements[:cut], self.statements[cut + 1 :])[part]
        before, after = (self.rows[1:], self.rows[:1]) if busy else ((), ())
        return (*before, *statements) if part == 0 else (*statements, *after)


Chosen = Sequence[tuple[Case, bool]]


def numbered(cases: Sequence[Case]) -> list[Case]:
    return [replace(case, number=number) for number, case in enumerate(cases)]


def alter(*actions: str) -> tuple[str, ...]:
    return tuple(f"ALTER TABLE {{t}} {action}" for action in actions)


def parameters(cases: Sequence[Case], in_every_run: Collection[tuple[str, bool]]) -> list[ParameterSet]:
    return [
        pytest.param(
            case,
            busy,
            id=f"{case.name}-{'busy' if busy else 'quiet'}",
            marks=() if (case.name, busy) in in_every_run else pytest.mark.nightly,
        )
        for case in cases
        for busy in (False, True)
    ]


def chosen(request: pytest.FixtureRequest) -> Chosen:
    """The cases of this file that this session runs."""
    specs = (getattr(item, "callspec", None) for item in request.session.items if item.path == request.path)
    return [(spec.params["case"], spec.params["busy"]) for spec in specs if spec and "case" in spec.params]


@dataclass
class StatementsPipeline(Pipeline):
    """``schema``: of all tables. ``found``: table → outcome after all statements."""

    schema: str
    found: dict[str, str] = field(default_factory=dict)

    @abstractmethod
    def truth(self, table: str) -> Truth:
        """Without columns that are never copied."""

    def run_cases(self, chosen: Chosen, execute: Callable[[str, tuple[str, ...]], None]) -> None:
        """The copies, the statements and the runs among them, rows, and runs."""
        self.run_successfully()
        self.settle()
        for part in (0, 1):
            for case, busy in chosen:
                execute(case.table(busy), case.phase(busy, part))
            self.settle()
        self.found = {case.table(busy): self.outcome(case.table(busy)) for case, busy in chosen}

    def check_case(self, case: Case, busy: bool) -> None:
        table, expected = case.table(busy), case.expected(busy)
        found, row = self.found[table], self.row(table)
        assert found == expected or (expected == SAME_OR_STOPPED and found in (SAME, STOPPED)), (found, row.reason)

    def resynced(self) -> dict[str, str]:
        """Table → outcome after a resync of all stopped tables; those that equal the source again are left out."""
        index = self.replicator().state.tables(self.definition.name)
        blocked = [table for table, row in index.items() if row.state is TableState.BLOCKED]
        arguments = {"approve_deletes": True}
        request(self.replicator(), CommandKind.RESYNC, {"tables": blocked, "key": "again", "arguments": arguments})
        self.settle()
        outcomes = {table: self.outcome(table.rpartition(".")[2]) for table in blocked}
        return {table: outcome for table, outcome in outcomes.items() if outcome != SAME}

    def row(self, table: str) -> TableRow:
        return self.replicator().state.tables(self.definition.name)[f"{self.schema}.{table}"]

    def outcome(self, table: str) -> str:
        """``same``, or the reason."""
        row = self.row(table)
        if row.state is TableState.BLOCKED:
            return STOPPED if row.reason and row.remedy else f"blocked without a reason: {row}"
        names, truth = self.truth(table)
        copy = Counter(tuple(_text(one.get(name)) for name in names) for one in self._copy(table))
        if copy == truth:
            return SAME
        return f"only at the source: {list(truth - copy)[:2]}, only in the copy: {list(copy - truth)[:2]} of {names}"

    def equals(self, table: str, name: str) -> bool:
        """Whether the copy equals the table that has this name now."""
        names, truth = self.truth(name)
        return Counter(tuple(_text(row[column]) for column in names) for row in self._copy(table)) == truth

    def is_missed(self, table: str) -> bool:
        """Whether a run reports that the source no longer lists the table."""
        return any("TBL004" in problem and f"{self.schema}.{table}" in problem for problem in self.run().problems)

    def settle(self) -> None:
        """Runs until the only work left is to report stopped tables. A run ends at the next statement that breaks a
        schema."""
        for _ in range(9 + len(self.tables)):
            if set(self.run().states) <= {"open_window", "close_window"}:
                return
        raise AssertionError("runs find work without end")

    def _copy(self, table: str) -> Iterator[dict[str, Any]]:
        location = self.replicator().targets.only.locate(self.target(f"{self.schema}.{table}"))
        yield from read(DeltaTable(location)).to_pylist()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)

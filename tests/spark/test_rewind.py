"""A table is restored to an earlier state, and the change log is applied again."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from airflow_cdc_provider.control import rewind
from airflow_cdc_provider.control.immediate_commands import carry_out
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.rewind import finish_rewind
from airflow_cdc_provider.core.decisions.commands import Command, CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.targets.registry import Targets
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT), Column("v", TEXT)), ("id",))
NUMBERS = TableSchema("public.t", (Column("id", INT), Column("n", INT)), ("id",))


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


class OwnStore(StateStore):
    """That of the scripted table."""

    def owner(self) -> str:
        return "tests"


class RewindCase:
    """A table and the rewinds of an operator."""

    def __init__(self, table: ScriptedTable, folder: Path) -> None:
        self.table = table
        state = OwnStore(f"sqlite:///{folder}/state.db")
        target = table.job_tables()
        targets = Targets(table.definition, lambda _: target)
        self.replicator = Replicator(table.definition, None, targets, table.log, state)  # type: ignore[arg-type]

    @property
    def path(self) -> str:
        return f"{self.table.definition.target.location}/t"

    def sql(self, statement: str) -> None:
        self.table.spark.sql(statement.format(t=f"delta.`{self.path}`"))

    def rewind_to(self, to: str) -> Command:
        request = self.replicator.state.request("hand", CommandKind.REWIND, (), {"to": to}, uuid.uuid4().hex, "ann")
        return self.carry_out(request)

    def carry_out(self, request: Command) -> Command:
        carry_out(self.replicator, [request], {"public.t": "t"}, {"public.t": self.table.target_state()}, "ann")
        after = self.replicator.state.command(request.id)
        assert after is not None
        return after

    def catch_up(self) -> None:
        job, staged = self.table.staged()
        assert staged.outcome is Outcome.DONE, staged.problem
        assert self.table.merged(job).outcome is Outcome.DONE


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ScriptedTable:
    """Three windows over a copy of two rows; another client damaged both rows between the second and the third
    window."""
    table = ScriptedTable(spark, tmp_path_factory.mktemp("damaged"), SCHEMA)
    table.copy([row(0, "a"), row(1, "b")])
    table.apply([table.update(row(0, "a1"))])
    table.apply([table.update(row(0, "a2")), table.insert(row(2, "c"))])
    lake = table.definition.target.location
    spark.sql(f"UPDATE delta.`{lake}/t` SET v = 'damaged'")
    spark.sql(f"DELETE FROM delta.`{lake}/t` WHERE id = 1")
    table.apply([table.update(row(0, "a3"))])
    return table


@pytest.fixture
def rewound(damaged: ScriptedTable, spark: SparkSession, tmp_path: Path) -> RewindCase:
    """A copy of the damaged table, on disk and in memory."""
    shutil.copytree(Path(damaged.definition.target.location).parent, tmp_path, dirs_exist_ok=True)
    table = ScriptedTable(spark, tmp_path, SCHEMA)
    table.window, table.order = damaged.window, damaged.order
    return RewindCase(table, tmp_path)


def test_rows_and_cursor_rewind_together_and_the_log_applies_again(rewound: RewindCase) -> None:
    table = rewound.table
    before = table.target_state().control
    done = rewound.rewind_to("2")
    assert (done.status, done.outcome) == (CommandStatus.DONE, "rewind: public.t")
    assert table.rows() == [(0, "a2"), (1, "b"), (2, "c")]
    current = table.target_state()
    assert before is not None and current.control is not None and not current.restored
    assert (current.control.window, current.control.state.name) == (2, TableState.REPLICATING)
    assert current.control.token > before.token and current.control.fence > before.fence
    assert "window 2 by ann" in current.control.state.reason
    rewound.catch_up()
    assert table.rows() == [(0, "a3"), (1, "b"), (2, "c")]
    notes = rewound.replicator.state.audit("hand", 9)
    assert [note.detail["from_window"] for note in notes if note.action == "rewind"] == [3]


def test_an_attempt_from_before_the_rewind_is_fenced(rewound: RewindCase) -> None:
    table = rewound.table
    table.land([table.update(row(0, "a4"))])
    job, staged = table.staged()
    assert staged.outcome is Outcome.DONE
    rewound.rewind_to("1")
    assert table.merged(job).outcome is Outcome.FENCED
    assert table.rows() == [(0, "a1"), (1, "b")]
    rewound.catch_up()
    assert table.rows() == [(0, "a4"), (1, "b"), (2, "c")]


@pytest.mark.parametrize("point", ["rewind.after_fence", "rewind.after_cut"])
def test_an_interrupted_rewind_is_finished_by_the_next_attempt(
    rewound: RewindCase, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    table = rewound.table

    def die(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rewind, "failpoint", die)
        rewound.rewind_to("2")
    current = table.target_state()
    assert current.control is not None and current.control.state.name is TableState.REWINDING
    (left,) = rewound.replicator.state.pending("hand")
    assert rewound.carry_out(left).status is CommandStatus.DONE
    assert table.rows() == [(0, "a2"), (1, "b"), (2, "c")]
    rewound.catch_up()
    assert table.rows() == [(0, "a3"), (1, "b"), (2, "c")]


def test_the_same_request_again_changes_nothing_more(rewound: RewindCase) -> None:
    request = rewound.rewind_to("2")
    version = DeltaTable(rewound.path).version()
    assert rewound.carry_out(request).status is CommandStatus.DONE
    assert DeltaTable(rewound.path).version() == version


def test_one_of_two_attempts_that_finish_a_rewind_at_once_does(
    rewound: RewindCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def race(name: str) -> None:
        if name == "rewind.after_cut":
            monkeypatch.setattr(rewind, "failpoint", lambda _: None)
            finish_rewind(rewound.replicator, "public.t", "t", "another")

    monkeypatch.setattr(rewind, "failpoint", race)
    assert rewound.rewind_to("2").status is CommandStatus.PENDING
    (left,) = rewound.replicator.state.pending("hand")
    assert rewound.carry_out(left).status is CommandStatus.DONE
    assert rewound.table.rows() == [(0, "a2"), (1, "b"), (2, "c")]


@pytest.mark.parametrize(("to", "code"), [("9", "CMD009"), ("yesterday", "CMD008")])
def test_an_invalid_destination_is_refused(rewound: RewindCase, to: str, code: str) -> None:
    refused = rewound.rewind_to(to)
    assert refused.status is CommandStatus.FAILED
    assert refused.result["tables"][0]["problem"]["code"] == code


@pytest.fixture
def widened(spark: SparkSession, tmp_path: Path) -> RewindCase:
    """A table whose column got a wider type and another name in its third version."""
    target = Target("delta", f"{tmp_path}/lake", options={"table_features": ["columnMapping", "typeWidening"]})
    table = ScriptedTable(spark, tmp_path, NUMBERS, target=target)
    table.copy([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    table.apply([table.update({"id": 1, "n": 10})])
    wide = Column("n", LogicalType(Kind.INT64))
    before = table.target_state()
    assert before.control is not None
    record = replace(before.control.fenced(), schema=replace(NUMBERS, columns=(NUMBERS.columns[0], wide)))
    widen = Alteration(Alter.WIDEN, NUMBERS.columns[1], wide)
    table.job_tables().alter("t", before, record, [widen])
    table.schema = replace(NUMBERS, columns=(NUMBERS.columns[0], wide))
    table.apply([table.update({"id": 1, "n": 2**40}), table.delete({"id": 2, "n": 2})])
    return RewindCase(table, tmp_path)


def test_a_table_with_a_widened_column_goes_back(widened: RewindCase) -> None:
    """The library of the other tests cannot read the rows of such a table."""
    assert numbers(widened) == [(1, 2**40)]
    done = widened.rewind_to("1")
    assert (done.status, done.outcome) == (CommandStatus.DONE, "rewind: public.t")
    assert numbers(widened) == [(1, 10), (2, 2)]
    assert dict(widened.table.read_at(None).dtypes)["n"] == "int"
    current = widened.table.target_state()
    assert current.control is not None and not current.restored and current.control.window == 1


def test_a_widened_table_whose_files_are_gone_stays(widened: RewindCase) -> None:
    removed = set(DeltaTable(widened.path, version=1).file_uris()) - set(DeltaTable(widened.path).file_uris())
    for name in removed:
        Path(name).unlink()
    refused = widened.rewind_to("1")
    assert refused.status is CommandStatus.FAILED
    assert refused.result["tables"][0]["problem"]["code"] == "TGT024" and numbers(widened) == [(1, 2**40)]


def numbers(case: RewindCase) -> list[tuple[int, int]]:
    frame = case.table.spark.read.format("delta").load(case.path)
    return sorted((found["id"], found["n"]) for found in frame.collect())


def test_a_version_whose_files_are_gone_leaves_the_table_unchanged(rewound: RewindCase) -> None:
    rows = rewound.table.rows()
    DeltaTable(rewound.path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refused = rewound.rewind_to("0")
    assert refused.status is CommandStatus.FAILED
    assert refused.result["tables"][0]["problem"]["code"] == "TGT024"
    current = rewound.table.target_state()
    assert current.control is not None
    assert (rewound.table.rows(), current.control.state.name) == (rows, TableState.REPLICATING)
    assert current.control.window == 3


def test_a_version_whose_deletion_vectors_are_gone_leaves_the_table_unchanged(rewound: RewindCase) -> None:
    """Another client's vacuum removes the vectors of earlier versions; the files that they belong to are in use."""
    rows, vectors = rewound.table.rows(), set(Path(rewound.path).rglob("deletion_vector_*.bin"))
    assert vectors
    for vector in vectors:
        vector.rename(vector.with_suffix(".away"))
    refused = rewound.rewind_to("2")
    for vector in vectors:
        vector.with_suffix(".away").rename(vector)
    assert refused.status is CommandStatus.FAILED
    assert refused.result["tables"][0]["problem"]["code"] == "TGT024"
    assert rewound.table.rows() == rows


def test_a_table_that_changed_meanwhile_is_not_rewound(rewound: RewindCase, monkeypatch: pytest.MonkeyPatch) -> None:
    target, current = rewound.replicator.targets.only, rewound.table.target_state()
    rewound.sql("DELETE FROM {t} WHERE id = 2")
    with pytest.raises(Fenced):
        target.restore_version("t", current, 1)

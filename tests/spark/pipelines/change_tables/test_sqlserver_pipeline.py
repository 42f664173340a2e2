"""SQL Server by its change tables, end to end on the simulator: copies beside writers, windows, merges, holes, new
columns, comparisons, and steps that are killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.spec.definition import Columns, Reconcile, TableRule
from airflow_cdc_provider.core.table.states import TableState
from tests.faults import attempts
from tests.model.seeds import seed
from tests.simulators.sqlserver.capture import Capture
from tests.simulators.sqlserver.engine import Engine
from tests.simulators.sqlserver.source import SimulatedSource
from tests.simulators.sqlserver.tables import Col
from tests.spark.pipelines.change_tables.simulator import KIND, installed_simulator
from tests.spark.pipelines.hidden_columns import HiddenColumns, hashed
from tests.spark.pipelines.polling.pipeline import PollingPipeline, Rows, definition

pytestmark = pytest.mark.jvm

SEED = seed()
COLUMNS = (Col("id", "int", False), Col("n", "bigint"), Col("word", "nvarchar(40)"), Col("doc", "nvarchar(max)"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[None]:
    with installed_simulator(tmp_path_factory.mktemp("site"), spark):
        yield


class Server:
    """Two tables of 30 rows, one of them a heap. The capture job runs while the connector sleeps."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.lock = threading.Lock()
        self.engine = Engine(folder)
        self.capture = Capture(self.engine)
        self.capture.enable_database()
        self.a = self.engine.create_table("dbo.a", COLUMNS, ("id",))
        self.b = self.engine.create_table("dbo.b", COLUMNS[:3], ("id",), clustered=False)
        for table in (self.a, self.b):
            self.capture.enable(table)
            with self.engine.transaction() as transaction:
                transaction.insert(
                    table,
                    *({"id": n, "n": n << 40, "word": "old", "doc": "x" * n} for n in range(30)),
                )
        SimulatedSource.on_sleep[str(folder)] = self.sleep
        self.sleep(400)

    def sleep(self, seconds: float) -> None:
        """Copies of several tables may wait at once."""
        with self.lock:
            self.engine.pass_time(seconds)
            self.capture.scan()

    def write(self, chance: random.Random, times: int) -> None:
        """Transactions of both tables. Keys move; in the heap they change hands within a statement."""
        for _ in range(times):
            transaction = self.engine.begin()
            for table in (self.a, self.b):
                ids = sorted(row["id"] for row in table.rows.values())
                new, one, other = max(ids) + 1, chance.choice(ids), chance.choice(ids)
                transaction.insert(table, {"id": new, "word": f"ü{new}"})
                transaction.update(table, _is(one), lambda row: {"n": (row["n"] or 0) + 1})
                transaction.update(table, _is(new), lambda row: {"id": row["id"] + 1000})
                if table is self.b and one != other:
                    swapped = {one: other, other: one}
                    transaction.update(
                        table,
                        lambda row, ids=swapped: row["id"] in ids,
                        lambda row, ids=swapped: {"id": ids[row["id"]]},
                    )
                transaction.delete(table, _is(chance.choice(ids)))
            if chance.random() < 0.2:
                transaction.rollback()
            else:
                transaction.commit()
        self.capture.scan()

    def truth(self, table: str) -> Rows:
        source = self.engine.tables[table]
        names = [column.name for column in source.columns]
        return {row["id"]: {name: row[name] for name in names} for row in source.rows.values()}


def _is(number: int) -> Callable[[dict[str, int]], bool]:
    return lambda row: row["id"] == number


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "server")


@pytest.fixture
def shop(tmp_path: Path, server: Server, spark: SparkSession, installed: None) -> Iterator[PollingPipeline]:
    """Both tables are copied and up to date."""
    folder = server.engine.folder
    info = ConnectionInfo("db", str(folder), extra=server.engine.properties)
    rules = [TableRule("dbo.a"), TableRule("dbo.b")]
    made = PollingPipeline(tmp_path, spark, definition(tmp_path, KIND, {}, rules), info, "id", server.truth)
    made.run_successfully()
    made.run_until_idle()
    assert made.differences() == []
    yield made


def test_copies_follow_every_transaction_and_a_run_without_changes_starts_no_job(
    shop: PollingPipeline, server: Server
) -> None:
    chance = random.Random(SEED)
    for _ in range(3):
        server.write(chance, 12)
        shop.run_successfully()
        assert shop.differences() == [], f"CDC_SEED={SEED}"
    assert set(shop.run_successfully().states) <= {"open_window", "close_window"}


@pytest.mark.nightly
def test_a_copy_is_consistent_when_the_stream_has_everything_that_it_has_shown(
    shop: PollingPipeline, server: Server
) -> None:
    """The capture job is late while the table is copied again."""
    chance = random.Random(SEED)
    shop.record_command(CommandKind.RESYNC, "dbo.a", approve_deletes=True)
    server.write(chance, 5)
    with server.engine.transaction() as transaction:
        transaction.update(server.a, lambda row: row["id"] < 20, lambda _row: {"word": "not captured yet"})
    shop.run_successfully()
    assert server.capture.read_to == max(server.engine.log[-1].lsn, server.capture.read_to), "the copy has waited"
    shop.run_until_idle()
    assert shop.differences() == [] and shop.control("dbo.a").state.name is TableState.REPLICATING


@pytest.mark.parametrize(
    ("task", "point"),
    [
        ("extract", "seal.before"),
        pytest.param("extract", "seal.after", marks=pytest.mark.nightly),
        pytest.param("extract", "extract.after_first_file", marks=pytest.mark.nightly),
        pytest.param("stage", "stage.after_rows", marks=pytest.mark.nightly),
        pytest.param("merge", "merge.after_commit", marks=pytest.mark.nightly),
    ],
)
def test_a_step_that_is_killed_has_the_same_result(
    shop: PollingPipeline, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, point: str
) -> None:
    sealed = shop.replicator().log.sealed()
    server.write(random.Random(SEED), 8)
    token = tmp_path / "token"
    token.touch()
    tasks: list[str] = []

    def killed() -> dict[str, str] | None:
        return {ARMED: f"{point}=kill9", TOKEN: str(token)} if tasks[-1] == task and token.exists() else None

    monkeypatch.setattr(attempts, "armed", SimpleNamespace(get=killed))
    shop.run_successfully(between=tasks.append)
    assert not token.exists(), "it was killed"
    assert shop.replicator().log.sealed() == sealed + 1, "the window is sealed once"
    assert shop.differences() == []


@pytest.mark.nightly
def test_a_table_that_is_captured_again_is_copied_again_and_the_other_table_continues(
    shop: PollingPipeline, server: Server
) -> None:
    shop.with_source(reconcile=Reconcile.AUTO)
    server.capture.disable(next(one for one in server.capture.instances if one.source is server.a))
    with server.engine.transaction() as transaction:
        transaction.update(server.a, _is(3), lambda _row: {"word": "not captured"})
        transaction.update(server.b, _is(3), lambda _row: {"word": "later"})
    server.capture.scan()
    blocked = shop.run()
    assert any("SRC115" in problem for problem in blocked.problems), blocked.problems
    assert shop.rows("dbo.b")[3]["word"] == "later"
    server.capture.enable(server.a)
    server.write(random.Random(SEED), 2)
    shop.run()
    shop.run_until_idle()
    assert shop.differences() == [] and shop.rows("dbo.a")[3]["word"] == "not captured"


def test_a_new_column_that_is_captured_in_time_is_added(shop: PollingPipeline, server: Server) -> None:
    server.engine.alter(server.b, "ALTER TABLE dbo.b ADD z int NULL", [*server.b.columns, Col("z", "int")])
    server.capture.scan()
    server.capture.enable(server.b, "second")
    with server.engine.transaction() as transaction:
        transaction.update(server.b, _is(3), lambda _row: {"z": 5})
    server.capture.scan()
    shop.run_until_idle()
    assert shop.rows("dbo.b")[3]["z"] == 5 and shop.rows("dbo.b")[4]["z"] is None and shop.differences() == []


@pytest.mark.nightly
def test_a_new_column_that_is_not_captured_stops_its_table_at_its_next_change(
    shop: PollingPipeline, server: Server
) -> None:
    server.engine.alter(server.b, "ALTER TABLE dbo.b ADD z int NULL", [*server.b.columns, Col("z", "int")])
    with server.engine.transaction() as transaction:
        transaction.update(server.b, _is(3), lambda _row: {"z": 5})
        transaction.update(server.a, _is(3), lambda _row: {"word": "later"})
    server.capture.scan()
    shop.run()
    problems = shop.run().problems
    assert any("does not capture z" in problem for problem in problems), problems
    assert shop.rows("dbo.a")[3]["word"] == "later"
    server.capture.enable(server.b, "second")
    shop.record_command(CommandKind.RESYNC, "dbo.b", approve_deletes=True)
    shop.run()
    shop.run_until_idle()
    assert shop.differences() == [] and shop.rows("dbo.b")[3]["z"] == 5


@pytest.mark.nightly
def test_verify_waits_for_the_capture_job_and_reports_that_it_is_not_exact(
    shop: PollingPipeline, server: Server
) -> None:
    with server.engine.transaction() as transaction:
        transaction.update(server.a, lambda _row: True, lambda _row: {"word": "not captured yet"})
    shop.record_command(CommandKind.VERIFY, "dbo.a", "dbo.b")
    results = shop.results(shop.run_successfully(), "verify")
    assert all(one.detail["identical"] and one.detail["inexact"] for one in results.values()), results


@pytest.mark.nightly
def test_hidden_columns_follow_every_transaction(
    shop: PollingPipeline, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = HiddenColumns(
        shop,
        server.truth,
        lambda row: {"no": hashed(row["id"]), "n": row["n"], "word": hashed(row["word"])},
        key="no",
        clear="ü",
    )
    hidden.hide(Columns(hash=("id", "word"), rename={"id": "no"}, cast={"n": "decimal(20,0)"}), monkeypatch)
    server.write(random.Random(SEED), 12)
    shop.run_successfully()
    assert (hidden.differences(), hidden.clear_windows()) == ([], []), f"CDC_SEED={SEED}"
    hidden.verify()

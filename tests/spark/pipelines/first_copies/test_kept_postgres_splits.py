"""First copies of PostgreSQL's tables that are interrupted go on under another snapshot."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.copied.kept_copies import KeptCopy, kept_copy_path
from airflow_cdc_provider.connectors.sources.postgres import copy as copying
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.connectors.sources.postgres.splits import split_of
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.copy_progress import copy_folder
from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.model.seeds import seed
from tests.spark.databases import new_schema
from tests.spark.pipelines.first_copies.test_extents import Extents
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.pipelines.schema_changes.test_policies import DATABASE, execute, policy_definition, source_database
from tests.waiting import until

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TABLE = "public.kept"
ROWS = 24_000
SPLITS = 4
MAKE = (
    "CREATE TABLE {t} (id bigint PRIMARY KEY, n int, v text)",
    f"INSERT INTO {{t}} SELECT k, k * 2, 'v' FROM generate_series(1, {ROWS}) k",
    "UPDATE {t} SET v = (SELECT string_agg(md5(k::text), '') FROM generate_series(1, 200) k) WHERE id % 6000 = 3",
    "ANALYZE {t}",
)
CHANGES = (
    "UPDATE {t} SET n = n + 1 WHERE id % 1000 = 3",
    f"DELETE FROM {{t}} WHERE id IN (5, 12005, {ROWS})",
    f"INSERT INTO {{t}} VALUES (-3, 3, 'first'), ({ROWS + 9}, 9, 'last'), (12005, 1, 'again')",
    "UPDATE {t} SET id = id + 50000 WHERE id IN (11, 18011)",
    "UPDATE {t} SET id = id - 40000 WHERE id IN (17100, 23100)",
    "UPDATE {t} SET n = 0 WHERE id IN (9003, 6011)",
    "DELETE FROM {t} WHERE id = 9003",
)


@dataclass
class Reads:
    """The conditions of the splits that were read to their end. ``before``: called with the number of each read."""

    done: list[str]
    started: int = 0
    before: Callable[[int], object] = lambda _: None


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    found, read_split = Reads([]), PostgresSource.read_split

    def counted(self: PostgresSource, split: str, schema: TableSchema) -> Iterator[pa.Table]:
        found.started += 1
        found.before(found.started)
        yield from read_split(self, split, schema)
        found.done.append(split_of(split).within)

    monkeypatch.setattr(PostgresSource, "read_split", counted)
    monkeypatch.setattr(copying, "ONE_PART_BYTES", 0)
    monkeypatch.setattr(copying, "parts", lambda *_: SPLITS)
    return found


@pytest.fixture
def kept(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Extents]:
    """``request.param``: the target; Spark's tasks load rows into a database."""
    kind = getattr(request, "param", "delta")
    with contextlib.ExitStack() as stack:
        database = None
        if kind == "postgres":
            database = stack.enter_context(new_schema("postgres", postgres, DATABASE))
        source = stack.enter_context(source_database(postgres, ()))
        execute(source, "kept", MAKE)
        target = database.target if database else Target("delta", f"{tmp_path}/lake")
        definition = policy_definition(tmp_path, target, (TableRule(TABLE),))
        definition = replace(definition, snapshot=replace(definition.snapshot, parallel=1))
        if database:
            definition = replace(definition, spark=replace(definition.spark, engine=EngineMode.SPARK))
        yield Extents(tmp_path, spark, definition, "public", kind=kind, server=postgres, database=database)


def kept_splits(kept: Extents) -> int:
    return sum("/rows/" in file.path for file in kept.replicator().log.store.files(copy_folder(TABLE)))


def kept_copy(kept: Extents) -> KeptCopy:
    path = kept_copy_path(TABLE)
    return KeptCopy.decode(kept.replicator().log.store.read(path), path)


def fail_from(first: int) -> Callable[[int], None]:
    def fail(number: int) -> None:
        if number >= first:
            raise SourceUnavailable.of("SRC001", "the server went away")

    return fail


@pytest.mark.nightly
def test_an_interrupted_copy_continues_under_another_snapshot_and_catches_up(kept: Extents, reads: Reads) -> None:
    reads.before = fail_from(SPLITS - 1)
    assert not kept.run().green
    begun = kept_copy(kept)
    assert len(reads.done) == SPLITS - 2
    kept.at_source(*CHANGES, table="kept")
    reads.before = lambda _: None
    kept.run()
    assert len(reads.done) == len(set(reads.done)) == SPLITS, "no split was read twice"
    assert kept.control(TABLE).floor == begun.copy.floor and is_catching_up(kept.row("kept"))
    kept.run_until_idle()
    kept.at_source("INSERT INTO {t} VALUES (0, 0, 'zero')", table="kept")
    kept.run_until_idle()
    kept.at_source("DELETE FROM {t} WHERE id = 0", table="kept")
    kept.run_until_idle()
    assert kept.outcome("kept") == SAME and not is_catching_up(kept.row("kept"))


@pytest.mark.usefixtures("reads")
def test_a_copy_of_one_snapshot_is_exact(kept: Extents) -> None:
    kept.run_successfully()
    assert kept.control(TABLE).high is None and kept.outcome("kept") == SAME


@pytest.mark.nightly
@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
def test_a_paused_copy_of_sparks_tasks_goes_on_when_it_is_resumed(kept: Extents) -> None:
    kept.definition = replace(kept.definition, snapshot=replace(kept.definition.snapshot, max_rows_per_second=3_000))
    stopped = threading.Thread(target=kept.execute, args=(kept.dag_run(),))
    stopped.start()
    until(lambda: kept_splits(kept) >= 1, "a split is kept")
    kept.record_command(CommandKind.PAUSE, TABLE)
    stopped.join()
    assert 1 <= kept_splits(kept) < SPLITS
    kept.at_source(*CHANGES, table="kept")
    kept.run()
    assert kept.row("kept").state is TableState.PAUSED
    kept.record_command(CommandKind.RESUME, TABLE)
    kept.run_until_idle()
    assert kept.outcome("kept") == SAME


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(4))
def test_random_changes_between_the_splits_leave_an_equal_copy(kept: Extents, reads: Reads, number: int) -> None:
    chosen = random.Random(f"{seed()} {number}")

    def change() -> None:
        low = chosen.randrange(ROWS)
        kept.at_source(
            f"UPDATE {{t}} SET n = n + {number + 1} WHERE id BETWEEN {low} AND {low + 400}",
            f"DELETE FROM {{t}} WHERE id BETWEEN {chosen.randrange(ROWS)} AND {low} AND id % 7 = {chosen.randrange(7)}",
            f"UPDATE {{t}} SET id = {chosen.randrange(10**6, 10**9)} WHERE id = (SELECT min(id) FROM {{t}}"
            f" WHERE id > {chosen.randrange(ROWS)} AND v = 'v')",
            f"INSERT INTO {{t}} VALUES ({chosen.randrange(-(10**6), 0)}, 1, 'new')",
            table="kept",
        )

    for attempt in range(SPLITS):
        reads.before = fail_from(reads.started + 2)
        kept.run()
        change()
        if attempt == chosen.randrange(SPLITS):
            kept.run(leave_out=["snapshot"])
    reads.before = lambda _: None
    kept.run_until_idle()
    assert kept.outcome("kept") == SAME

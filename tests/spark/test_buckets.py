"""Staging and target in buckets of each kind of object store: all steps, and who may commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind
from airflow_cdc_provider.core.errors import Fenced
from airflow_cdc_provider.core.spec.definition import Definition, OnDelete, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.core.storage.locations import parse_location
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.delta.storage import storage_options
from spark_jobs import merge, snapshot, stage, verify
from spark_jobs.runtime.object_stores import configure_object_stores, hadoop_settings
from spark_jobs.writers import delta_local
from tests.buckets import S3_ELSE_NIGHTLY, ObjectStore, RunningStores
from tests.relay import names_commit, relay_to
from tests.spark.replicator import Replicator, by_table
from tests.spark.scripted_table import Row, ScriptedTable

pytestmark = [pytest.mark.jvm, pytest.mark.server]

Database = psycopg.Connection[object]
INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
SCHEMA = TableSchema("public.t", (Column("id", INT, nullable=False), Column("v", TEXT)), ("id",))
ROUNDS = 5


@pytest.fixture(params=S3_ELSE_NIGHTLY)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


@pytest.fixture
def base_url(objects: ObjectStore) -> str:
    return objects.url(uuid.uuid4().hex[:8])


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, base_url: str, objects: ObjectStore) -> ScriptedTable:
    """A copy with one row at window 0, and window 1 not yet applied."""
    table = ScriptedTable(spark, tmp_path, SCHEMA, base_url=base_url, objects=objects.connection)
    configure_object_stores(spark, table.definition, table.secrets)
    table.copy([row(1, "a")])
    table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
    return table


def row(key: int, value: str) -> Row:
    return {"id": key, "v": value}


@contextmanager
def new_file_systems(spark: SparkSession) -> Iterator[None]:
    """Hadoop keeps a file system per bucket, with the settings that it began with."""
    file_systems = spark.sparkContext._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]
    file_systems.closeAll()
    yield
    file_systems.closeAll()


def fence(table: ScriptedTable) -> int:
    current = table.target_state()
    assert current.control is not None
    record = current.control.fenced(State(TableState.REPLICATING, "2026-01-01T00:00:00Z"))
    return table.job(StepKind.STAGE, ()).tables.fence("t", current, record).fence


def test_every_step_from_snapshot_to_verify_works_with_staging_and_target_in_a_bucket(
    spark: SparkSession,
    tmp_path: Path,
    database: Database,
    connection: ConnectionInfo,
    base_url: str,
    objects: ObjectStore,
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute('CREATE TABLE "Odd Näme" (v text)')
    database.execute('ALTER TABLE "Odd Näme" REPLICA IDENTITY FULL')
    database.execute("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 500) n")
    database.execute("INSERT INTO \"Odd Näme\" VALUES ('a'), ('a'), (NULL)")
    name = f"s3{uuid.uuid4().hex[:8]}"
    database.execute(f'CREATE PUBLICATION {name} FOR TABLE t, "Odd Näme"')
    names = ["public.t", "public.Odd Näme"]
    rules = [TableRule(names[0], on_delete=OnDelete.SOFT), TableRule(names[1], target="odd")]
    replicator = Replicator(tmp_path, name, connection, rules, base_url, objects.connection)
    lo = dict(replicator.source.open_stream(names))

    copied = by_table(replicator.run(replicator.step(StepKind.SNAPSHOT), snapshot.run))
    assert {one.outcome for one in copied.values()} == {Outcome.DONE} and copied["public.t"].rows == 500
    database.execute("UPDATE t SET v = 'new' WHERE id <= 100")
    database.execute("DELETE FROM t WHERE id > 480")
    database.execute("ALTER TABLE t ADD COLUMN w int")
    database.execute("UPDATE t SET w = 1 WHERE id = 1")
    database.execute('DELETE FROM "Odd Näme" WHERE v IS NULL')

    # As the operator submits it: the step is read from the bucket, the executors write into it.
    limit = dict(replicator.source.status(lo, names).limit)
    step = replicator.step(StepKind.EXTRACT, window=1, lo=lo, limit=limit)
    process = replicator.submit(step)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert objects.secret not in output
    assert by_table(replicator.result(step))["public.t"].counts["update"] == 101

    staged = replicator.step(StepKind.STAGE, window=1)
    batches = by_table(replicator.run(staged, stage.run))
    assert {one.outcome for one in batches.values()} == {Outcome.DONE}, batches
    merged = by_table(replicator.run(replicator.step(StepKind.MERGE, window=1, merge_of=staged.attempt), merge.run))
    assert {one.outcome for one in merged.values()} == {Outcome.DONE}, merged

    hi = replicator.log.manifest(1).hi
    verified = by_table(replicator.run(replicator.step(StepKind.VERIFY, window=2, lo=hi), verify.run))
    assert all(one.detail["identical"] for one in verified.values()), verified
    assert verified["public.t"].detail["target_rows"] == 480

    for folder in replicator.log.store.names("batches"):
        replicator.log.store.delete(f"batches/{folder}")
    assert objects.keys(parse_location(replicator.log.store.url("batches")).path) == []
    everything = " ".join(objects.keys(parse_location(base_url).path))
    assert "/staging/" in everything and "/lake/t/_delta_log/" in everything
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "nothing stands on this host"


def test_a_batch_staged_before_a_fence_is_not_applied_and_one_staged_after_it_is_once(table: ScriptedTable) -> None:
    early, _ = table.staged()
    fence(table)
    assert table.merged(early).outcome is Outcome.FENCED and table.rows() == [(1, "a")]
    late, _ = table.staged()
    assert table.merged(late).outcome is Outcome.DONE and table.rows() == [(1, "b"), (2, "c")]
    assert table.merged(late).outcome is Outcome.FENCED and table.rows() == [(1, "b"), (2, "c")]


def test_a_fence_raised_during_a_merge_rejects_its_commit(
    table: ScriptedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, _ = table.staged()
    monkeypatch.setattr(delta_local, "failpoint", lambda name: fence(table) if name == "merge.before_commit" else None)
    assert table.merged(staged).outcome is Outcome.FENCED
    assert table.rows() == [(1, "a")]


@pytest.mark.nightly
def test_a_merge_that_loses_its_version_to_another_library_reads_the_table_again(table: ScriptedTable) -> None:
    """Spark and deltalake write the same version again and again: no commit is ever lost."""
    options = storage_options(parse_location(table.definition.target.location), table.secrets.target)
    url = f"{table.definition.target.location}/t"
    done = 0
    with ThreadPoolExecutor(1) as pool:
        for number in range(ROUNDS):
            staged, _ = table.staged()
            foreign = pool.submit(_touch, url, options, number)
            merged = table.merged(staged)
            foreign.result()
            assert merged.outcome in (Outcome.DONE, Outcome.FENCED), merged
            if merged.outcome is Outcome.DONE:
                done += 1
                table.land([table.update(row(1, f"r{number}"))])
    history = DeltaTable(url, storage_options=options).history()
    assert [int(entry["foreign"]) for entry in history if "foreign" in entry] == list(reversed(range(ROUNDS)))
    assert sum("userMetadata" in entry for entry in history) == done + 1
    assert sorted(int(entry["version"]) for entry in history) == list(range(ROUNDS + done + 1))


def _touch(url: str, options: dict[str, str], number: int) -> None:
    """An empty append by deltalake, which retries until it is committed."""
    opened = DeltaTable(url, storage_options=options)
    write_deltalake(
        opened,
        pa.schema(opened.schema().to_arrow()).empty_table(),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"foreign": str(number)}, app_transactions=[Transaction("foreign", number)]
        ),
    )


@pytest.mark.parametrize("engine", [EngineMode.AUTO, EngineMode.SPARK])
def test_a_commit_whose_answer_is_lost_is_recognised_as_done(
    spark: SparkSession, tmp_path: Path, base_url: str, objects: ObjectStore, engine: EngineMode
) -> None:
    with relay_to(objects.address, names_commit) as relay, new_file_systems(spark):
        table = ScriptedTable(spark, tmp_path, SCHEMA, base_url=base_url, objects=objects.at(relay.address))
        configure_object_stores(spark, table.definition, table.secrets)
        table.copy([row(1, "a")])
        table.land([table.update(row(1, "b")), table.insert(row(2, "c"))])
        table.use(engine)
        staged, _ = table.staged()
        relay.losing.value = 1
        assert table.merged(staged).outcome is Outcome.DONE
        assert relay.losing.value == 0 and table.rows() == [(1, "b"), (2, "c")]
        assert table.merged(staged).outcome is Outcome.FENCED and table.rows() == [(1, "b"), (2, "c")]


def test_one_of_two_fences_from_the_same_state_wins(table: ScriptedTable) -> None:
    current = table.target_state()
    assert current.control is not None
    tables, record = table.job(StepKind.STAGE, ()).tables, current.control.fenced()
    tables.fence("t", current, record)
    with pytest.raises(Fenced):
        tables.fence("t", current, record)


def test_secrets_reach_sparks_file_system_and_nothing_that_spark_shows(
    spark: SparkSession, table: ScriptedTable, objects: ObjectStore
) -> None:
    shown = str(spark.sparkContext.getConf().getAll()) + str(spark.sql("SET -v").collect())
    assert objects.secret not in shown
    assert objects.secret in str(hadoop_settings(table.definition, table.secrets, {}))


def test_each_bucket_has_its_own_connection_and_folders_have_none() -> None:
    both = Definition(
        name="shop",
        source=Source("postgres", "none"),
        target=Target("delta", "s3://lake/shop"),
        tables=(),
        staging=Staging("s3://log/_cdc"),
    )
    access = Secrets(
        target=ConnectionInfo("a", login="k1", password="p1", extra={"aws_session_token": "t1"}),
        staging=ConnectionInfo("b", extra={"endpoint_url": "http://127.0.0.1:1", "region_name": "x"}),
    )
    settings = hadoop_settings(both, access, {})
    lake, log = "fs.s3a.bucket.lake", "fs.s3a.bucket.log"
    assert (settings[f"{lake}.access.key"], settings[f"{lake}.session.token"]) == ("k1", "t1")
    assert "Temporary" in settings[f"{lake}.aws.credentials.provider"] and f"{lake}.endpoint" not in settings
    assert (settings[f"{log}.endpoint"], settings[f"{log}.endpoint.region"]) == ("http://127.0.0.1:1", "x")
    assert "Environment" in settings[f"{log}.aws.credentials.provider"] and f"{log}.access.key" not in settings
    local = Definition(
        name="shop", source=both.source, target=Target("delta", "/lake"), tables=(), staging=Staging("file:///log")
    )
    assert hadoop_settings(local, Secrets(), {}) == {}

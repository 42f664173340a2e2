"""Jobs of BigQuery's stand-in: tries after a refusal, parts that are loaded once, copies that are about to get the name
of their table, and what a new copy keeps of the old one."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
import requests
from google.cloud.bigquery_storage_v1 import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

from airflow_cdc_provider.core.errors import TargetUnavailable
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.bigquery import PROJECT, EmbeddedBigQuery
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets import costs
from airflow_cdc_provider.targets.bigquery import jobs, parts
from airflow_cdc_provider.targets.bigquery.scripts import swap_job
from airflow_cdc_provider.targets.bigquery.target import BigQueryTarget
from airflow_cdc_provider.targets.database import control
from airflow_cdc_provider.targets.database.commit import Swap
from airflow_cdc_provider.targets.database.loading import finish_load, load_part
from airflow_cdc_provider.targets.database.names import COPIED, PUBLISHED, own_control_table, staging_table
from airflow_cdc_provider.targets.database.staging import create_shadow_table, prepare_staging
from tests.waiting import until

pytestmark = pytest.mark.server

SCHEMA = TableSchema(
    "public.t",
    (Column("id", LogicalType(Kind.INT64), nullable=False), Column("at", LogicalType(Kind.TIMESTAMPTZ))),
    ("id",),
)
RECORD = ControlRecord("shop", "public.t", "log", "me", "one", 1, 0, "f0", State(TableState.REPLICATING, "now"))
DAYS = [{"table": "public.t", "column": "at"}]


@pytest.fixture
def dataset(bigquery_server: EmbeddedBigQuery) -> str:
    return f"d{uuid.uuid4().hex}"


def opened(server: EmbeddedBigQuery, folder: Path, dataset: str, **options: Any) -> BigQueryTarget:
    given = {"project": PROJECT, "dataset": dataset, **options}
    log = ChangeLog(LocalStore(str(folder)))
    return BigQueryTarget(Target("bigquery", options=given), server.connection, "shop", log)


@pytest.fixture
def target(bigquery_server: EmbeddedBigQuery, tmp_path: Path, dataset: str) -> BigQueryTarget:
    made = opened(bigquery_server, tmp_path, dataset, partition_by=DAYS, labels={"team": "x"})
    execute(made, f"CREATE SCHEMA `{PROJECT}`.`{dataset}`")
    return made


def execute(target: BigQueryTarget, statement: str) -> list[tuple[Any, ...]]:
    with target.server.session("test") as connection:
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor.fetchall()


def rows(*ids: int) -> pa.RecordBatch:
    at = pa.array([0] * len(ids), pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64()), "at": at, "_cdc_order": ["0"] * len(ids)})


def load(target: BigQueryTarget, *ids: int) -> tuple[str, ControlRecord]:
    """Loads a copy that has not got the name of its table."""
    record = replace(RECORD, nonce=uuid.uuid4().hex)
    shadow = staging_table("t", COPIED, record.nonce)
    prepare_staging(target.server, "t")
    create_shadow_table(target.server, shadow, SCHEMA, False, record.nonce, ())
    part = load_part(target.server, shadow, SCHEMA, rows().schema.names, 0, [rows(*ids)])
    finish_load(target.server, shadow, SCHEMA, rows().schema.names, [part], 1)
    return shadow, record


def copy(target: BigQueryTarget, *ids: int) -> ControlRecord:
    before = target.state("public.t", "t")
    shadow, record = load(target, *ids)
    if before.control:
        record = replace(record, fence=before.control.fence + 1)
    target.swap(Swap("t", shadow, before, record))
    return record


@pytest.mark.parametrize("name", ["t", own_control_table("t")])
def test_a_table_that_expires_takes_no_changes(target: BigQueryTarget, name: str) -> None:
    copy(target, 1)
    assert target.state("public.t", "t").unfit is None
    expiration = "expiration_timestamp = TIMESTAMP '2100-01-01 00:00:00 UTC'"
    execute(target, f"ALTER TABLE {target.server.sql.table(name)} SET OPTIONS({expiration})")
    unfit = target.state("public.t", "t").unfit
    assert unfit is not None and (unfit.problem.code, unfit.copy_helps) == ("TGT101", False)
    assert unfit.problem.found == f"{name}: expiration_timestamp"


def test_a_column_that_somebody_widened_to_floats_stops_its_table(target: BigQueryTarget) -> None:
    """Keys above 2^53 would be folded, and decimals rounded."""
    before = target.state("public.t", "t")
    shadow, record = load(target, 1)
    target.swap(Swap("t", shadow, before, replace(record, schema=SCHEMA)))
    assert target.state("public.t", "t").unfit is None
    execute(target, f"ALTER TABLE {target.server.sql.table('t')} ALTER COLUMN id SET DATA TYPE FLOAT64")
    unfit = target.state("public.t", "t").unfit
    assert unfit is not None and (unfit.problem.code, unfit.copy_helps) == ("TGT098", True)
    assert unfit.problem.found == "column id is float64 instead of int64"


def refuse_next(server: EmbeddedBigQuery, reason: str) -> None:
    requests.post(f"{server.url}/fail/{reason}", timeout=10).raise_for_status()


def test_a_job_above_the_rate_is_tried_again_under_another_id(
    target: BigQueryTarget, bigquery_server: EmbeddedBigQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(target, 1)
    monkeypatch.setattr(jobs, "DELAYS_S", (0.01, 0.01))
    refuse_next(bigquery_server, "rateLimitExceeded")
    state = target.state("public.t", "t")
    assert state.control is not None
    raised = target.fence("t", state, state.control.fenced())
    after = target.state("public.t", "t").control
    assert after is not None and after.fence == raised.fence == 2


def test_a_job_that_stays_above_the_rate_is_reported_with_what_to_do(
    target: BigQueryTarget, bigquery_server: EmbeddedBigQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "DELAYS_S", ())
    refuse_next(bigquery_server, "rateLimitExceeded")
    with pytest.raises(TargetUnavailable, match=r"TGT068.*higher quota"):
        execute(target, "SELECT 1")


@pytest.mark.parametrize("options", [{}, {"stage": "gs://loading/cdc"}], ids=["uploads", "a stage"])
def test_a_part_that_two_tasks_load_counts_once_and_leaves_no_file(
    target: BigQueryTarget,
    bigquery_server: EmbeddedBigQuery,
    tmp_path: Path,
    dataset: str,
    options: dict[str, Any],
) -> None:
    staged = opened(bigquery_server, tmp_path, dataset, **options)
    shadow, _ = load(staged)
    names = rows().schema.names
    parts = [load_part(staged.server, shadow, SCHEMA, names, part, [rows(1, 1)]) for part in (1, 1, 2)]
    assert finish_load(staged.server, shadow, SCHEMA, names, parts[1:], 1) == 4
    assert execute(staged, f"SELECT COUNT(*) FROM {staged.sql.table(shadow)}") == [(4,)]
    with staged.server.session("clean") as connection:
        staged.server.drop_if_unused(connection, shadow)
    listed = requests.get(f"{bigquery_server.url}/storage/v1/b/loading/o?prefix=cdc/{shadow}", timeout=10)
    assert listed.json() == {"items": []}


def test_a_new_copy_keeps_grants_and_labels_and_has_partitions_and_clusters(target: BigQueryTarget) -> None:
    copy(target, 1)
    table = target.sql.table("t")
    execute(target, f'GRANT `roles/bigquery.dataViewer` ON TABLE {table} TO "user:reader@example.com"')
    with target.server.session("test") as connection:
        client = connection.jobs.client
        made = client.get_table(f"{target.server.schema}.t")
        made.labels = {**made.labels, "by": "hand"}
        client.update_table(made, ["labels"])
    copy(target, 2)
    with target.server.session("test") as connection:
        found = connection.jobs.client.get_table(f"{target.server.schema}.t")
        policy = connection.jobs.client.get_iam_policy(f"{target.server.schema}.t")
        assert target.server.arranged_by(connection.cursor(), "t") == {"id", "at"}
    assert found.labels == {"team": "x", "by": "hand"} and found.time_partitioning.type_ == "DAY"
    assert [sorted(binding["members"]) for binding in policy.bindings][-1] == ["user:reader@example.com"]
    assert execute(target, f"SELECT id FROM {table}") == [(2,)]


@pytest.fixture
def slow_swap(target: BigQueryTarget) -> Iterator[tuple[threading.Thread, ControlRecord]]:
    """A copy over another one whose control row is committed, and whose job still runs: it has read the loaded copy."""
    old = copy(target, 1)
    shadow, record = load(target, 2)
    record = replace(record, fence=old.fence + 1)
    state = target.state("public.t", "t")
    swap = Swap("t", shadow, state, record)
    raised = swap.raise_fence(target.sql)
    assert raised is not None
    with target.server.session("test") as connection:
        for command in (*swap.commands(target.sql), raised):
            command.execute(connection.cursor())
    table, copied, loaded = map(target.sql.table, ("t", "copied", shadow))
    options = target.server.sql.table_options(f"cdc:{record.nonce}", {})
    script = (
        f"DECLARE n INT64 DEFAULT 0; CREATE TABLE {copied} COPY {loaded};"
        "WHILE n < 300 DO SET n = n + 1; END WHILE;"
        f"CREATE OR REPLACE TABLE {table} COPY {copied} OPTIONS({options});"
    )

    def run() -> None:
        with target.server.session("test") as connection:
            connection.jobs.query(script, swap_job(shadow))

    thread = threading.Thread(target=run)
    thread.start()
    with target.server.session("test") as connection:
        cursor = connection.cursor()
        until(lambda: target.server.comment(cursor, "copied") is not None, "the copy of the loaded copy")
    yield thread, record
    thread.join()


@pytest.mark.nightly
def test_no_state_is_read_while_a_copy_is_about_to_get_the_name(
    target: BigQueryTarget, slow_swap: tuple[threading.Thread, ControlRecord]
) -> None:
    thread, record = slow_swap
    assert thread.is_alive()
    state = target.state("public.t", "t")
    assert state.identity == record.nonce and state.control == record


@pytest.mark.nightly
def test_a_copy_whose_job_is_running_is_not_removed(
    target: BigQueryTarget, slow_swap: tuple[threading.Thread, ControlRecord]
) -> None:
    """The next attempt waits, and keeps the control row of the copy."""
    thread, record = slow_swap
    prepare_staging(target.server, "t")
    thread.join()
    assert target.state("public.t", "t").control == record
    with target.server.session("test") as connection:
        assert set(control.records(target.server, connection.cursor(), "t")) == {record.nonce}


def test_streams_have_the_rows_that_pages_have(
    target: BigQueryTarget, bigquery_server: EmbeddedBigQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(target, 1, 2, 3)

    def without_tls(_: object) -> BigQueryReadClient:
        channel = grpc.insecure_channel(f"127.0.0.1:{bigquery_server.stream_port}")
        return BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))

    monkeypatch.setattr(parts, "read_client", without_tls)
    with target.server.session("test") as connection:
        table = connection.jobs.client.get_table(f"{target.server.schema}.t")
    columns = {"id": "id", "at": "at", "_cdc_order": "_cdc_order"}
    streams = [pickle.loads(pickle.dumps(one)) for one in parts.streams_of(target.server, PROJECT, table, columns)]
    pages = target.server.table_parts("t", list(columns))
    streamed, paged = ([one.to_arrow() for one in found] for found in (streams, pages))
    assert pa.concat_tables(streamed).sort_by("id") == pa.concat_tables(paged).sort_by("id")
    assert pa.concat_tables(paged)["id"].to_pylist() == ["1", "2", "3"] and isinstance(pages[0], parts.Page)


def test_jobs_count_what_they_cost(target: BigQueryTarget) -> None:
    with costs.collected() as cost:
        execute(target, "SELECT 1")
    assert cost == {"bytes_billed": 10 * 2**20, "slot_ms": 100}
    with costs.collected() as cost:
        target.state("public.t", "t")
    assert cost == {}, "a read of the state costs nothing"


def test_the_view_of_the_cut_is_replaced_only_for_another_table(
    target: BigQueryTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = copy(target, 1)
    table = CutTable("t", 0, record.nonce, table="public.t")
    target.publish_cut(Cut("shop", 0, "2026-01-01T00:00:00Z", (table,)))
    queries: list[str] = []
    query = jobs.Jobs.query

    def recorded(of: jobs.Jobs, sql: str, *given: Any, **more: Any) -> Any:
        queries.append(sql)
        return query(of, sql, *given, **more)

    monkeypatch.setattr(jobs.Jobs, "query", recorded)
    target.publish_cut(Cut("shop", 1, "2026-01-01T00:00:01Z", (table,)))
    assert [text for text in queries if "VIEW" in text] == [] and queries
    execute(target, f"DROP VIEW {target.sql.table(PUBLISHED)}")
    target.publish_cut(Cut("shop", 2, "2026-01-01T00:00:02Z", (table,)))
    assert execute(target, f"SELECT cut_window, valid FROM {target.sql.table(PUBLISHED)}") == [(2, 1)]


def test_every_query_has_the_limit_of_the_bytes_billed(
    bigquery_server: EmbeddedBigQuery, tmp_path: Path, dataset: str
) -> None:
    limited = opened(bigquery_server, tmp_path, dataset, maximum_bytes_billed=10**9)
    with limited.server.session("test") as connection:
        job = connection.jobs.query("SELECT 1", f"limited-{uuid.uuid4().hex}")
        sent = connection.jobs.client.get_job(job.job_id, location=job.location)
    assert sent.maximum_bytes_billed == 10**9


def test_a_missing_dataset_is_reported_with_its_statement(bigquery_server: EmbeddedBigQuery, tmp_path: Path) -> None:
    (problem,) = opened(bigquery_server, tmp_path, "none_of_this", region="EU").check(())
    assert problem.code == "TGT052"
    assert problem.do == f"CREATE SCHEMA `{PROJECT}`.`none_of_this` OPTIONS(location = 'EU');"


def test_a_copy_has_its_options_from_the_moment_it_has_its_name(
    target: BigQueryTarget, bigquery_server: EmbeddedBigQuery
) -> None:
    """As in BigQuery, where a statement is atomic: a table without an identity would be one of somebody else."""
    name = target.server.sql.table
    execute(target, f"CREATE TABLE {name('one')} (id INT64)")
    requests.post(f"{bigquery_server.url}/slow/1500", timeout=10).raise_for_status()
    copying = threading.Thread(
        target=execute, args=(target, f"CREATE TABLE {name('two')} COPY {name('one')} OPTIONS(description = 'ours')")
    )
    copying.start()
    seen = set[str | None]()
    with target.server.session("test") as connection:
        while copying.is_alive():
            seen.add(target.server.comment(connection.cursor(), "two"))
        seen.add(target.server.comment(connection.cursor(), "two"))
    assert seen <= {None, "ours"} and "ours" in seen

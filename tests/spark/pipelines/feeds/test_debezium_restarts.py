"""A real Debezium that lost its offsets and sent a new snapshot of its tables into the same topics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.connectors.decoders.common import exact_json
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.change_log import EXPIRED
from airflow_cdc_provider.core.spec.definition import Reconcile, Source
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.debezium.restart_databases import MariaDB, Postgres, request_snapshot
from tests.debezium.topics import topic_messages
from tests.mariadb import embedded
from tests.spark.pipelines.feeds.debezium_copy import DebeziumCopy, debezium_copy
from tests.spark.pipelines.feeds.pipeline import FeedPipeline, definition

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]


MEANWHILE = (
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET name = 'away' WHERE id = 3",
    "DELETE FROM emptied",
)


def lose_and_go_on(one: DebeziumCopy) -> None:
    """The new snapshot and the changes after it are in the topics when the next run starts."""
    one.lose_offsets(*MEANWHILE)
    one.database.do("UPDATE t SET name = 'later' WHERE id = 1", "INSERT INTO emptied VALUES (7, 'new')")
    one.awaited()


def in_a_folder(one: DebeziumCopy, folder: Path, spark: SparkSession, before: list[dict[str, Any]]) -> None:
    """A folder of the same messages cannot be split at the start of the new snapshot: the tables stop."""
    (folder / "events").mkdir(parents=True)
    options = {"format": "debezium", "topic_prefix": one.database.prefix, "location": f"{folder}/events"}
    source = Source("files", "", options=options)
    feed = FeedPipeline(folder, spark, definition(folder, source, one.feed.tables, key=("id",)))
    behind = topic_messages(one.debezium, one.database.prefix)
    for number, messages in enumerate((before, [message for message in behind if message not in before])):
        lines = [exact_json.dumps(message["value"]) for message in messages if message["value"] is not None]
        file = folder / "events" / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (number, number))
        if number == 0:
            feed.run_until_idle()
            assert feed.copied_rows("public.t", "id").keys() == {1, 2, 3, 4}
    dag_run = feed.run()
    holes = {hole.table: hole.kind for hole in feed.replicator().log.manifest(feed.replicator().log.sealed()).holes}
    assert holes == dict.fromkeys(one.feed.tables, EXPIRED), dag_run.problems
    dag_run = feed.run()
    assert all(any(f"{table} is blocked" in problem for problem in dag_run.problems) for table in feed.tables), (
        dag_run.problems
    )


def test_a_copy_follows_a_postgresql_connector_that_lost_its_offsets(tmp_path: Path, spark: SparkSession) -> None:
    """Deliberate snapshots change nothing; a table that was emptied meanwhile has no row in the new snapshot."""
    with (
        EmbeddedKafka() as broker,
        EmbeddedPostgres() as server,
        debezium_copy(tmp_path, spark, broker, Postgres(server), Reconcile.MANUAL) as one,
    ):
        for number, kind in enumerate(("incremental", "blocking")):
            request_snapshot(one.database, number, kind)
            one.awaited()
            one.feed.run_until_idle()
            assert one.differences() == []
        before = topic_messages(one.debezium, one.database.prefix)
        lose_and_go_on(one)
        in_a_folder(one, tmp_path / "folder", spark, before)
        dag_run = one.feed.run()
        assert any("airflow cdc resync feed --table public.t" in problem for problem in dag_run.problems), (
            dag_run.problems
        )
        assert one.copied_rows("public.t") == {1: "x", 2: "b", 3: "c", 4: "d"}, "the copy ends before the new snapshot"
        one.feed.record_command(CommandKind.RESYNC, *one.feed.tables)
        one.feed.run_until_idle()
        assert one.differences() == []


@pytest.mark.nightly
def test_a_copy_follows_a_mariadb_connector_that_lost_its_offsets_by_itself(
    tmp_path: Path, spark: SparkSession
) -> None:
    with (
        EmbeddedKafka() as broker,
        embedded() as server,
        debezium_copy(tmp_path, spark, broker, MariaDB(server, str(tmp_path / "history")), Reconcile.AUTO) as one,
    ):
        request_snapshot(one.database, 0, "incremental")
        one.awaited()
        one.feed.run_until_idle()
        assert one.differences() == []
        lose_and_go_on(one)
        first, second = one.feed.run(), one.feed.run()
        assert any("shop.emptied is blocked" in problem for problem in (*first.problems, *second.problems)), (
            first.problems
        )
        assert one.copied_rows("shop.t") == one.database.rows("t")
        assert one.copied_rows("shop.emptied") == {1: "a"}, "the copy ends before the new snapshot, and is blocked"

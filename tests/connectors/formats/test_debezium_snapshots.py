"""Which snapshots the messages of Debezium belong to; source blocks as Debezium wrote them."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.debezium.snapshots import Snapshots
from tests.debezium.record import RECORDED

POSTGRESQL = {"connector": "postgresql", "name": "pg", "schema": "public", "table": "t"}
MARIADB = {"connector": "mariadb", "name": "my", "db": "shop", "table": "t", "file": "binlog.000001", "row": 0}
FIRST = {**POSTGRESQL, "snapshot": "first", "sequence": '[null,"28289856"]', "lsn": 28289856}
LOST = {**POSTGRESQL, "snapshot": "first", "sequence": '[null,"28616640"]', "lsn": 28616640}
BLOCKING = {**POSTGRESQL, "snapshot": "first", "sequence": '["28292088","28292144"]', "lsn": 28292144}
INCREMENTAL = {**POSTGRESQL, "snapshot": "incremental", "sequence": '["28290976","28290976"]', "lsn": None}
MY_FIRST = {**MARIADB, "snapshot": "true", "pos": 2048}
MY_BLOCKING = {**MARIADB, "snapshot": "first", "pos": 5659}


def count_full_snapshots(*sources: dict[str, Any], blocking: bool = False) -> int:
    watch = Snapshots(blocking)
    for number, source in enumerate(sources):
        watch.observe(Message(json.dumps({"after": {"id": 1}, "source": source, "op": "r"}).encode(), at_ms=number + 1))
    return sum(not one.is_changes for one in watch.snapshots)


@pytest.mark.parametrize(
    ("sources", "blocking", "snapshots"),
    [
        ((FIRST, {**FIRST, "snapshot": "last"}), False, 1),
        ((FIRST, LOST), False, 2),
        ((FIRST, BLOCKING, INCREMENTAL), False, 1),
        ((MY_FIRST, MY_BLOCKING), False, 2),
        ((MY_FIRST, MY_BLOCKING), True, 0),
    ],
)
def test_full_snapshots_are_distinguished_from_requested_ones(
    sources: tuple[dict[str, Any], ...], blocking: bool, snapshots: int
) -> None:
    assert count_full_snapshots(*sources, blocking=blocking) == snapshots


@pytest.mark.parametrize("name", ["postgres", "postgres_bare", "mariadb", "mariadb_bare"])
def test_a_recorded_feed_has_one_snapshot_per_topic_or_in_files_per_table(name: str) -> None:
    in_topics, in_files = Snapshots(False), Snapshots(False)
    topics, at = set(), {}
    for number, line in enumerate(gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines(), 1):
        recorded = json.loads(line)
        if recorded["value"] is not None:
            value = json.dumps(recorded["value"], separators=(",", ":")).encode()
            in_topics.observe(Message(value, topic=recorded["topic"], at_ms=number))
            in_files.observe(Message(value, topic=f"a/{number}.json"))
            payload = recorded["value"].get("payload", recorded["value"])
            if payload.get("op") == "r":
                topics.add(recorded["topic"])
                table = recorded["topic"].partition(".")[2]
                at[table] = min(payload["ts_ms"], at.get(table, payload["ts_ms"]))
    rows = [one.topic for one in in_topics.snapshots if not one.is_changes]
    assert topics and topics <= set(rows) and len(rows) == len(set(rows))
    assert any(one.ended for one in in_topics.snapshots)
    begun = {one.topic: one.at_ms for one in in_files.snapshots if not one.is_changes}
    assert all(0 < begun[table] <= moment for table, moment in at.items()), "the statement that creates it is earlier"
    assert len(begun) == sum(not one.is_changes for one in in_files.snapshots)

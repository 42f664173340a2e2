"""Topics of a real broker: new messages, read messages, lost messages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import HoleFound, StreamItem
from airflow_cdc_provider.connectors.transports.kafka import source as kafka_source
from airflow_cdc_provider.connectors.transports.kafka.cluster import Cluster
from airflow_cdc_provider.connectors.transports.kafka.positions import Channel, Span
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.connectors.transports.kafka.topic_tables import TopicTables
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.connectors.kafka_topics import MYSQL, WAIT_S, Topics, messages

pytestmark = [pytest.mark.jvm, pytest.mark.server]
OF_T, OF_U = b'"table": "t"', b'"table": "u"'


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def topics(broker: EmbeddedKafka) -> Topics:
    return Topics(broker, f"p{os.urandom(4).hex()}")


def as_u(sent: Iterable[Message]) -> list[Message]:
    return [one._replace(value=one.value and one.value.replace(OF_T, OF_U)) for one in sent]


def event_ids(items: Iterable[StreamItem]) -> list[str]:
    return sorted(item.event_id for item in items if isinstance(item, ChangeRecord))


def test_a_compacted_topic_is_reported(topics: Topics) -> None:
    topics.send(topics.make("d.t"), messages())
    topics.send(topics.make("d.u", cleanup_policy="compact,delete"), as_u(messages()))
    tasks = topics.tasks()
    (problem,) = topics.source().check(tasks)
    assert (problem.code, problem.where) == ("SRC078", f"topic {topics.prefix}.d.u")
    assert topics.source().check(tasks[:1]) == []


def test_each_run_refuses_the_tables_of_a_compacted_topic(topics: Topics) -> None:
    topic = topics.make("d.t")
    topics.send(topic, messages())
    topics.send(topics.make("d.u"), as_u(messages()))
    tasks = topics.tasks()
    topics.window({}, tasks)
    assert topics.source().refused(tasks) == {}
    topics.set(topic, **{"cleanup.policy": "compact,delete"})
    assert {table: one.code for table, one in topics.source().refused(tasks).items()} == {"d.t": "SRC078"}


def test_topics_and_tables_are_compared_once_for_all_tables(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    built = list[Mapping[str, frozenset[str]]]()

    def counted(first: Mapping[str, frozenset[str]], *settings: Any) -> TopicTables:
        built.append(first)
        return TopicTables(first, *settings)

    topic = topics.make("d.t")
    topics.send(topic, messages())
    topics.send(topics.make("d.u"), as_u(messages()))
    tasks = topics.tasks()
    topics.window({}, tasks)
    monkeypatch.setattr(kafka_source, "TopicTables", counted)
    assert topics.source().refused(tasks) == {} and len(built) == 1
    topics.set(topic, **{"cleanup.policy": "compact,delete"})
    assert list(topics.source().refused([*tasks] * 5)) == ["d.t"] and len(built) == 3


def test_a_tombstone_whose_delete_was_removed_is_a_hole_of_its_table(topics: Topics) -> None:
    """What compaction leaves has the offsets of what a transaction that was rolled back leaves."""
    topic = topics.make("d.t")
    sent = messages()
    topics.send(topic, sent)
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    tombstone = Message(None, sent[0].key)
    topics.send(topic, [tombstone])
    items, lo = topics.window(lo, tasks)
    assert holes(items) == []
    topics.begun(topic, sent[:1]).abort_transaction(WAIT_S)
    topics.send(topic, [tombstone])
    (hole,) = holes(topics.window(lo, tasks)[0])
    assert hole.table == "d.t" and "compaction removed" in hole.detail


def test_partitions_are_read_once_from_their_beginning(topics: Topics) -> None:
    topic = topics.make("d.t", 3)
    sent = messages(20)
    topics.send(topic, sent[:30])
    tasks = topics.tasks()
    assert [task.table for task in tasks] == ["d.t"]
    first, lo = topics.window({}, tasks)
    assert topics.window(lo, tasks) == ([], lo)
    topics.send(topic, sent[30:])
    second, lo = topics.window(lo, tasks)
    rows = sum(one.value is not None for one in sent)
    assert len(event_ids(first)) + len(event_ids(second)) == rows
    assert len(set(event_ids(first)) | set(event_ids(second))) == rows


def test_a_topic_without_a_copied_table_is_read_once_the_table_is_copied(topics: Topics) -> None:
    topics.send(topics.make("d.t"), messages())
    topics.send(topics.make("d.u"), as_u(messages()))
    tasks = topics.tasks()
    assert [task.table for task in tasks] == ["d.t", "d.u"]
    _, lo = topics.window({}, tasks[:1])
    assert topics.source().contains_all_after(lo, lo, "d.u")
    assert not topics.source().contains_all_after(lo, lo, "d.t")
    later, _ = topics.window(lo, tasks)
    assert {item.table for item in later if isinstance(item, ChangeRecord)} == {"d.u"}


def test_aborted_transactions_are_skipped_and_open_ones_are_waited_for(topics: Topics) -> None:
    topic = topics.make("d.t")
    sent = messages(20)
    topics.send(topic, sent[:5])
    topics.begun(topic, sent[5:10]).abort_transaction(WAIT_S)
    open_ = topics.begun(topic, sent[10:15])
    tasks = topics.tasks()
    first, lo = topics.window({}, tasks)
    assert len(event_ids(first)) == sum(one.value is not None for one in sent[:5])
    open_.commit_transaction(WAIT_S)
    second, lo = topics.window(lo, tasks)
    assert len(event_ids(second)) == sum(one.value is not None for one in sent[10:15])
    assert not topics.source().status(lo, ["d.t"]).has_changes


def holes(items: Iterable[StreamItem]) -> list[HoleFound]:
    return [item for item in items if isinstance(item, HoleFound)]


def test_messages_removed_by_retention_before_they_were_read_are_a_hole_of_their_table(topics: Topics) -> None:
    topic = topics.make("d.t")
    topics.send(topic, messages())
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    topics.send(topic, messages())
    topics.forget(topic)
    topics.send(topic, messages())
    items, hi = topics.window(lo, tasks)
    (hole,) = holes(items)
    assert hole.table == "d.t" and "were removed" in hole.detail
    again, _ = topics.window(hi, tasks)
    assert event_ids(again) and not holes(again)
    assert not topics.source().contains_all_after({}, {}, "d.t")


def test_messages_are_kept_as_long_as_the_shortest_retention_of_a_topic(topics: Topics) -> None:
    first, second = topics.make("d.t"), topics.make("d.u")
    for topic, days in ((first, "7"), (second, "3")):
        topics.set(topic, **{"retention.ms": str(int(days) * 86_400_000)})
    assert topics.source().retained_log(None).keeps == timedelta(days=3)
    for topic in (first, second):
        topics.set(topic, **{"retention.ms": "-1"})
    assert topics.source().retained_log(None).keeps is None


def test_a_recreated_topic_is_another_topic(topics: Topics) -> None:
    topic, other = topics.make("d.t"), topics.make("d.u")
    topics.send(topic, messages())
    topics.send(other, as_u(messages(4)))
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    topics.remove(topic)
    topics.make("d.t")
    topics.send(topic, [*messages(), *messages()])
    topics.send(other, as_u(messages()))
    items, hi = topics.window(lo, tasks)
    (hole,) = holes(items)
    assert hole.table == "d.t" and "created again" in hole.detail
    assert {item.table for item in items if isinstance(item, ChangeRecord)} == {"d.u"}
    assert topics.source().contains_all_after(hi, hi, "d.t"), "the new one is read from its beginning"
    again, _ = topics.window(hi, tasks)
    assert {item.table for item in again if isinstance(item, ChangeRecord)} == {"d.t"}


class WithoutIds(Cluster):
    """Of a broker before Kafka 2.8, or of another maker."""

    def spans(self, channels: Sequence[Channel]) -> dict[Channel, Span]:
        return {channel: replace(span, topic_id="") for channel, span in super().spans(channels).items()}


class TopicsWithoutIds(Topics):
    def source(self, **options: Any) -> KafkaSource:
        source = super().source(**options)
        source.cluster = WithoutIds(ConnectionInfo("k", extra=self.broker.client))
        return source


def test_a_recreated_topic_is_another_topic_although_the_broker_has_no_topic_ids(broker: EmbeddedKafka) -> None:
    topics = TopicsWithoutIds(broker, f"p{os.urandom(4).hex()}")
    topic = topics.make("d.t")
    topics.send(topic, messages())
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    assert topics.window(lo, tasks) == ([], lo)
    topics.send(topic, messages())
    items, lo = topics.window(lo, tasks)
    assert event_ids(items) and not holes(items)
    topics.remove(topic)
    topics.make("d.t")
    topics.send(topic, messages(40))
    items, hi = topics.window(lo, tasks)
    (hole,) = holes(items)
    assert hole.table == "d.t" and "created again" in hole.detail
    again, _ = topics.window(hi, tasks)
    assert event_ids(again) and not holes(again)


def test_a_deleted_topic_is_a_hole_of_its_table(topics: Topics) -> None:
    topic, other = topics.make("d.t"), topics.make("d.u")
    topics.send(topic, messages())
    topics.send(other, as_u(messages()))
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    topics.remove(topic)
    items, hi = topics.window(lo, tasks)
    (hole,) = holes(items)
    assert hole.table == "d.t" and "does not exist any more" in hole.detail
    assert topics.window(hi, tasks) == ([], hi)


def test_an_added_partition_is_read_from_its_beginning(topics: Topics) -> None:
    topic = topics.make("d.t")
    topics.send(topic, messages())
    tasks = topics.tasks()
    _, lo = topics.window({}, tasks)
    topics.add_partition(topic, 2)
    topics.send(topic, [one._replace(key=None) for one in messages()], partitioner="random")
    later, hi = topics.window(lo, tasks)
    assert f"{topic}/1" in hi
    assert len(event_ids(later)) == sum(one.value is not None for one in messages())


def test_an_added_partition_of_rows_without_a_position_is_a_hole(topics: Topics) -> None:
    topic = topics.make("d.t")
    topics.send(topic, messages(setup=replace(MYSQL, unwrapped=True)))
    tasks = [TableTask("d.t", "t", MYSQL.table, TableRule("d.t"), "", TableState.PENDING)]
    _, lo = topics.window({}, tasks, unwrapped=True)
    topics.add_partition(topic, 2)
    items, hi = topics.window(lo, tasks, unwrapped=True)
    (hole,) = holes(items)
    assert hole.table == "d.t" and "partition 1" in hole.detail and "it was added" in hole.detail
    assert topics.window(hi, tasks, unwrapped=True) == ([], hi)


def test_a_wrong_password_is_reported_without_secrets(topics: Topics) -> None:
    wrong = {**topics.broker.client, "sasl.password": "wrong-password"}
    source = KafkaSource(
        Source("kafka", "k", options={"topics": ["*"], "format": "debezium"}), ConnectionInfo("k", extra=wrong), "feed"
    )
    with pytest.raises(SourceUnavailable, match=r"SRC081.*[Aa]uthentication") as failed:
        source.tables()
    assert "wrong-password" not in str(failed.value)


def test_missing_topics_are_reported(topics: Topics) -> None:
    (problem,) = topics.source().check([])
    assert (problem.code, problem.allowed) == ("SRC083", f"{topics.prefix}.*")


def test_a_silent_writer_is_noticed_unless_a_topic_of_heartbeats_goes_on(topics: Topics) -> None:
    topic = topics.make("d.t")
    assert topics.source(max_silence=1.0).silent_since() is None
    topics.send(topic, messages())
    time.sleep(1.5)
    since = topics.source(max_silence=1.0).silent_since()
    assert since is not None and abs((datetime.now(UTC) - since).total_seconds()) < WAIT_S
    assert topics.source().silent_since() is None and topics.source(max_silence=3600.0).silent_since() is None
    topics.send(topics.make("heartbeat"), messages(1)[:1])
    assert topics.source(max_silence=3600.0).silent_since() is None
    later = topics.source(max_silence=1.0).last_arrival()
    assert later is not None and later > since


def test_a_table_is_read_from_a_topic_of_several_tables_in_which_it_comes_late(topics: Topics, tmp_path: Path) -> None:
    """And it has a hole if messages are removed, although the first ones are those of another table."""
    topic = topics.make("all")
    topics.send(
        topics.make("d.v"),
        [one._replace(value=(one.value or b"").replace(OF_T, b'"table": "v"')) for one in messages()],
    )
    topics.send(topic, messages(30))
    topics.send(topic, as_u(messages()))
    topics.send(topics.make("ends"), [Message(b'{"status": "BEGIN", "id": "1", "ts_ms": 1}')])
    (first, other) = topics.tasks()
    assert [first.table, other.table] == ["d.t", "d.v"]
    declared = tmp_path / "schemas.json"
    declared.write_text(json.dumps(to_plain(replace(first.schema, table="d.u"))))
    late = next(task for task in topics.tasks(schemas=str(declared)) if task.table == "d.u")
    assert not topics.source(schemas=str(declared)).status({}, ["d.u"]).limit.keys() - {f"{topic}/0"}
    items, lo = topics.window({}, [late])
    assert {item.table for item in items if isinstance(item, ChangeRecord)} == {"d.u"}
    assert not topics.source().contains_all_after(lo, lo, "d.u")
    began = SourceSnapshot("another", topic, "again", 0)
    restart = topics.source().restart({}, lo, began, [began], [], ["d.t", "d.u", "d.v"])
    assert restart.tables == {topic: {"d.t"}, "": {"d.u"}}
    topics.send(topic, as_u(messages()))
    topics.forget(topic)
    topics.send(topic, messages(30))
    items, _ = topics.window(lo, [first, late, other])
    assert sorted(hole.table for hole in holes(items)) == ["d.t", "d.u"]

"""Positions in topics: what was read, what follows, and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.transports.kafka.client_settings import client_settings, tls_warnings
from airflow_cdc_provider.connectors.transports.kafka.positions import (
    SPLIT_MESSAGES,
    Channel,
    Span,
    TopicOffset,
    contains_all_after,
    first_message,
    lost_channels,
    pack_splits,
    position_of,
    ranges_of,
    topic_offsets,
)
from airflow_cdc_provider.connectors.transports.kafka.source import KafkaSource
from airflow_cdc_provider.connectors.transports.kafka.topic_status import WINDOW_MESSAGES, read_status
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.spec.definition import Source
from tests.connectors.formats import debezium_messages as debezium
from tests.connectors.formats import ydb_goldens as ydb

A, B, C = Channel("srv.d.a", 0), Channel("srv.d.a", 1), Channel("db/t/feed", 0)


def test_an_offset_is_read_back_from_its_text() -> None:
    offsets = {A: TopicOffset(7, "id"), C: TopicOffset(0)}
    assert topic_offsets(position_of(offsets)) == offsets
    assert position_of(offsets) == {"srv.d.a/0": "7 id", "db/t/feed/0": "0"}


def test_a_window_ends_at_the_present_ends_of_the_partitions() -> None:
    status = read_status({"srv.d.a/0": "7 id"}, {A: Span(3, 9, "id"), C: Span(0, 4)}, ())
    assert status.has_changes
    assert status.limit == {"srv.d.a/0": "9 id", "db/t/feed/0": "4"}
    assert not read_status({"srv.d.a/0": "9 id"}, {A: Span(3, 9, "id")}, ()).has_changes


@pytest.mark.parametrize(
    ("span", "found", "goes_on"),
    [
        (Span(8, 9, "id"), "offsets 7 to 7 were removed", "8 id"),
        (Span(0, 6, "id"), "it ends at offset 6", "0 id"),
        (Span(0, 9, "other"), "deleted and created again", "0 other"),
    ],
)
def test_lost_messages_are_a_hole_of_their_topic_only(span: Span, found: str, goes_on: str) -> None:
    status = read_status({"srv.d.a/0": "7 id"}, {A: span, C: Span(0, 4)}, ())
    assert status.has_changes
    assert lost_channels(status.limit).keys() == {"srv.d.a/0"}
    assert found in lost_channels(status.limit)["srv.d.a/0"]
    assert position_of(topic_offsets(status.limit)) == {"srv.d.a/0": goes_on, "db/t/feed/0": "4"}
    assert list(ranges_of({"srv.d.a/0": "7 id"}, status.limit)) == [("db/t/feed", 0, 0, 4)]


@pytest.mark.parametrize(
    ("before", "now", "again"),
    [
        (first_message(5, 70), first_message(5, 70), False),
        (first_message(5, 70), first_message(9, 80), False),
        (first_message(5, 70), first_message(0, 90), True),
        (first_message(0, 70), first_message(0, 90), True),
        ("id", first_message(0, 90), False),
        (first_message(0, 70), "id", False),
        ("", first_message(0, 90), False),
    ],
)
def test_without_topic_ids_the_first_message_shows_that_a_topic_was_created_again(
    before: str, now: str, again: bool
) -> None:
    status = read_status({"srv.d.a/0": f"7 {before}"}, {A: Span(0, 9, now)}, ())
    assert bool(lost_channels(status.limit)) == again


def test_a_deleted_topic_is_reported_once() -> None:
    status = read_status({"srv.d.a/0": "7 id"}, {}, {"srv.d.a"})
    assert "does not exist any more" in lost_channels(status.limit)["srv.d.a/0"]
    after = position_of(topic_offsets(status.limit))
    assert not read_status(after, {}, {"srv.d.a"}).has_changes
    assert read_status(after, {A: Span(0, 3, "new")}, ()).limit == {"srv.d.a/0": "3 new"}


def test_an_added_partition_is_read_from_its_beginning_only() -> None:
    known = {"srv.d.a/0": "7"}
    assert read_status(known, {A: Span(0, 7), B: Span(0, 2)}, ()).limit == {"srv.d.a/0": "7", "srv.d.a/1": "2"}
    late = read_status(known, {A: Span(0, 7), B: Span(1, 2)}, ())
    assert lost_channels(late.limit) == {"srv.d.a/1": "partition 1 of srv.d.a: offsets 0 to 0 were removed"}


def test_an_added_partition_of_a_topic_that_offsets_order_is_a_hole_once() -> None:
    """A key that moved to it would begin again at offset 0."""
    known, spans = {"srv.d.a/0": "7"}, {A: Span(0, 7), B: Span(0, 2)}
    status = read_status(known, spans, (), by_offset={"srv.d.a"})
    assert status.has_changes
    assert "it was added" in lost_channels(status.limit)["srv.d.a/1"]
    after = position_of(topic_offsets(status.limit))
    assert read_status(after, spans, (), by_offset={"srv.d.a"}).limit == {"srv.d.a/0": "7", "srv.d.a/1": "2"}
    assert lost_channels(read_status({}, spans, (), by_offset={"srv.d.a"}).limit) == {}, "it was never read"


@pytest.mark.parametrize(
    ("options", "head", "by_offset"),
    [
        ({"format": "ydb"}, ydb.message({"key": [1], "erase": {}}), True),
        ({"format": "ydb"}, ydb.message({"key": [1], "erase": {}, "ts": [5, 7]}), False),
        ({"format": "debezium", "unwrapped": True}, debezium.message({"id": 1, "__op": "c"}, {"id": 1}), True),
        (
            {"format": "debezium"},
            debezium.message(debezium.envelope("c", None, {"id": 1}, debezium.mysql(connector="mariadb"), None)),
            False,
        ),
    ],
)
def test_the_first_messages_show_whether_offsets_order_a_topic(
    options: Mapping[str, Any], head: Message, by_offset: bool
) -> None:
    source = KafkaSource(Source("kafka", "k", options={"topics": ["*"], **options}), ConnectionInfo("k"), "feed")
    source.__dict__["_heads"] = [head]
    assert source._is_ordered_by_offset(head.topic) == by_offset
    assert not source._is_ordered_by_offset("another")


def test_a_topic_that_was_never_read_and_lost_its_first_messages_is_no_hole() -> None:
    assert read_status({"srv.d.a/0": "7"}, {A: Span(0, 7), C: Span(1, 2)}, ()).limit == {"srv.d.a/0": "7"}


def test_a_long_backlog_is_read_in_windows_with_a_part_of_every_partition() -> None:
    limit = topic_offsets(read_status({}, {A: Span(0, 3 * WINDOW_MESSAGES), C: Span(0, 10)}, ()).limit)
    assert WINDOW_MESSAGES * 0.99 < limit[A].offset <= WINDOW_MESSAGES
    assert 0 < limit[C].offset < 10


def test_the_topic_of_a_new_name_waits_until_the_former_one_is_read() -> None:
    """Else a change could follow the deletion of its row."""
    spans = {A: Span(0, 2 * WINDOW_MESSAGES), C: Span(0, WINDOW_MESSAGES)}
    first = read_status({}, spans, (), {C.topic: {A.topic}}).limit
    assert first == {str(A): str(WINDOW_MESSAGES), str(C): "0"}
    second = read_status(first, spans, (), {C.topic: {A.topic}}).limit
    assert second == {str(A): str(2 * WINDOW_MESSAGES), str(C): "0"}
    assert read_status(second, spans, (), {C.topic: {A.topic}}).limit == {
        str(A): str(2 * WINDOW_MESSAGES),
        str(C): str(WINDOW_MESSAGES),
    }


def test_the_lost_first_messages_of_a_new_name_are_a_hole_of_a_table_that_was_read() -> None:
    spans = {A: Span(0, 9), C: Span(4, 9)}
    assert str(C) not in read_status({}, spans, (), {C.topic: {A.topic}}).limit
    assert "offsets 0 to 3 were removed" in str(read_status({str(A): "9"}, spans, (), {C.topic: {A.topic}}).limit)


@given(st.dictionaries(st.integers(0, 30), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_splits_contain_every_offset_once_and_a_partition_at_most_once(lags: dict[int, tuple[int, int]]) -> None:
    lo = position_of({Channel("t", number): TopicOffset(start) for number, (start, _) in lags.items()})
    limit = position_of({Channel("t", number): TopicOffset(start + more) for number, (start, more) in lags.items()})
    ranges = list(ranges_of(lo, limit))
    splits = pack_splits(ranges)
    assert sorted(one for split in splits for one in split) == sorted(ranges)
    for split in splits:
        assert sum(one.stop - one.start for one in split) <= SPLIT_MESSAGES
        assert len({one.partition for one in split}) == len(split)
    for number, (start, more) in lags.items():
        assert sum(one.stop - one.start for one in ranges if one.partition == number) == more
        assert min((one.start for one in ranges if one.partition == number), default=start) == start


def test_the_history_of_a_table_is_complete_if_nothing_was_read_or_removed() -> None:
    spans = {A: Span(0, 9), C: Span(2, 9)}
    read = {"db/t/feed/0": "5"}
    assert contains_all_after(read, read, spans, ["srv.d.a"])
    assert not contains_all_after({"srv.d.a/0": "1"}, {"srv.d.a/0": "1"}, spans, ["srv.d.a"])
    assert not contains_all_after({}, {}, spans, ["db/t/feed"])
    assert contains_all_after({}, read, spans, ["db/t/feed"]), "the log has what the topic no longer has"
    assert not contains_all_after({}, {}, spans, [])


def test_the_settings_of_a_connection_are_used_and_its_login_is_that_of_sasl() -> None:
    extra = {"bootstrap.servers": "a:1", "sasl.mechanism": "PLAIN", "enable.ssl.certificate.verification": False}
    settings = client_settings(ConnectionInfo("k", login="u", password="p", extra={**extra, "group.id": "g"}))
    assert settings == {
        "bootstrap.servers": "a:1",
        "sasl.mechanism": "PLAIN",
        "enable.ssl.certificate.verification": "false",
        "sasl.username": "u",
        "sasl.password": "p",
    }
    assert client_settings(ConnectionInfo("k", host="h", port=1))["bootstrap.servers"] == "h:1"


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"bootstrap.servers": "a", "plugin.library.paths": "x.so"},
        {"bootstrap.servers": "a", "sasl.kerberos.kinit.cmd": "rm"},
        {"bootstrap.servers": "a", "sasl.kerberos.principal": "x; touch /tmp/x #"},
        {"bootstrap.servers": "a", "sasl.kerberos.keytab": "/tmp/x$(touch /tmp/x)"},
        {"bootstrap.servers": "a", "security.protocol": "SSL", "ssl.engine.location": "/tmp/x.so"},
        {"bootstrap.servers": "a", "security.protocol": "SSL", "ssl.providers": "legacy,x"},
        {"bootstrap.servers": "a", "security.protocol": "SSL", "ssl.ca.location": "ca.pem"},
        {"bootstrap.servers": "a", "security.protocol": "SSL", "ssl.key.location": "/keys/../../etc/shadow"},
        {"bootstrap.servers": "a", "sasl.oauthbearer.config": "x"},
        {"bootstrap.servers": "a", "sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"},
        {"bootstrap.servers": "a", "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:80@elsewhere.example"},
        {"bootstrap.servers": "a", "sasl.oauthbearer.assertion.private.key.file": "/etc/shadow"},
        {"bootstrap.servers": "a", "ssl.ca.location": "/ca.pem"},
        {"bootstrap.servers": "a", "security.protocol": "SASL_PLAINTEXT", "ssl.ca.location": "/ca.pem"},
    ],
)
def test_a_connection_that_loads_code_or_names_no_server_is_refused(extra: dict[str, str]) -> None:
    with pytest.raises(CheckFailed, match=r"CON030 .*extra of connection k") as caught:
        client_settings(ConnectionInfo("k", extra=extra))
    assert all(name in caught.value.problems[0].found for name in list(extra)[-1:])


def test_disabled_verification_is_reported() -> None:
    def findings(**settings: object) -> list[str]:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        info = ConnectionInfo("k", extra={"bootstrap.servers": "a", "security.protocol": "SASL_SSL", **given})
        return [problem.found for problem in tls_warnings(info)]

    assert findings() == findings(enable_ssl_certificate_verification=True) == []
    assert findings(enable_ssl_certificate_verification=False) == ["enable.ssl.certificate.verification: false"]
    assert findings(ssl_endpoint_identification_algorithm="none") == ["ssl.endpoint.identification.algorithm: none"]
    assert findings(security_protocol="PLAINTEXT", enable_ssl_certificate_verification="false") == []

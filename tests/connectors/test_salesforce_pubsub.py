"""The Pub/Sub client against a small server: flow control, keepalives, broken streams, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import grpc
import pytest

from airflow_cdc_provider.connectors.sources.salesforce.errors import DecodeError
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.failures import PUBSUB, pubsub_failure
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM, EARLIEST, LATEST, message_class
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import TRIES, Connection
from airflow_cdc_provider.core.errors import Blocked, CdcError, CheckFailed, PositionLost, SourceUnavailable
from tests.connectors.salesforce_events import CHANNEL, event
from tests.connectors.salesforce_pubsub import SECRET, EventServer, Failure, Tokens, numbered

pytestmark = pytest.mark.server

SOME = numbered([event(seq=n, changed=["0x80"], Phone=str(n)) for n in range(250)])
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def server() -> Iterator[EventServer]:
    with EventServer(list(SOME), keepalive_s=0.05, latest=b"far") as server:
        yield server


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


@pytest.fixture
def connection(server: EventServer, tokens: Tokens) -> Iterator[Connection]:
    with tokens.client(server).connected() as connection:
        yield connection


def until_quiet(connection: Connection, start: bytes = b"start", preset: int = CUSTOM) -> list[ChannelEvent]:
    found: list[ChannelEvent] = []
    for delivery in connection.deliveries(CHANNEL, preset, start, 5):
        found += delivery.events
        if not delivery.events:
            break
    return found


WIRE = {
    "FetchRequest": (
        {"topic_name": "/t", "replay_preset": 2, "replay_id": b"\1\2", "num_requested": 100},
        "0a022f74 1002 1a020102 2064",
    ),
    "FetchResponse": (
        {"latest_replay_id": b"\7", "rpc_id": "r", "pending_num_requested": 3},
        "120107 1a0172 2003",
    ),
    "TopicInfo": (
        {
            "topic_name": "t",
            "tenant_guid": "g",
            "can_publish": True,
            "can_subscribe": True,
            "schema_id": "s",
            "rpc_id": "r",
        },
        "0a0174 120167 1801 2001 2a0173 320172",
    ),
    "SchemaInfo": ({"schema_json": "{}", "schema_id": "s", "rpc_id": "r"}, "0a027b7d 120173 1a0172"),
    "ProducerEvent": ({"id": "i", "schema_id": "s", "payload": b"p"}, "0a0169 120173 1a0170"),
    "SchemaRequest": ({"schema_id": "s"}, "0a0173"),
    "TopicRequest": ({"topic_name": "t"}, "0a0174"),
}


@pytest.mark.parametrize(("name", "fields", "wire"), [(name, *one) for name, one in WIRE.items()], ids=WIRE)
def test_a_message_has_the_bytes_of_the_published_field_numbers(
    name: str, fields: dict[str, object], wire: str
) -> None:
    assert message_class(name)(**fields).SerializeToString() == bytes.fromhex(wire)


def test_an_event_is_in_its_response_at_the_published_field_numbers() -> None:
    wire = bytes.fromhex("0a0b 0a06 120173 1a0170 1201ff".replace(" ", ""))
    (one,) = message_class("FetchResponse").FromString(wire).events
    assert (one.event.schema_id, one.event.payload, one.replay_id) == ("s", b"p", b"\xff")


def test_an_unknown_field_of_a_newer_server_is_ignored() -> None:
    assert message_class("TopicInfo").FromString(bytes.fromhex("0a0174 ea0701 78").replace(b" ", b"")).topic_name == "t"


def test_a_drain_gives_every_event_after_the_position_in_order(connection: Connection) -> None:
    assert until_quiet(connection) == SOME
    assert until_quiet(connection, SOME[199].replay_id) == SOME[200:]


def test_a_hundred_events_are_requested_and_the_next_when_those_are_consumed(
    server: EventServer, connection: Connection
) -> None:
    deliveries = connection.deliveries(CHANNEL, CUSTOM, b"start", 5)
    taken = [next(deliveries) for _ in range(3)]
    assert [len(one.events) for one in taken] == [40, 40, 20]
    assert server.delivered == 100, "an unused event costs the org nothing"
    assert len(next(deliveries).events) == 40
    assert [request.num_requested for request in server.seen] == [100, 100]
    first, later = server.seen
    assert (first.topic_name, first.replay_preset, first.replay_id) == (CHANNEL, CUSTOM, b"start")
    assert (later.replay_preset, later.replay_id) == (0, b"")


def test_a_keepalive_contains_the_position_that_the_server_has_reached(connection: Connection) -> None:
    *_, last = islice(connection.deliveries(CHANNEL, CUSTOM, SOME[-1].replay_id, 5), 1)
    assert last[:2] == ((), b"far") and last.at_s > 1_700_000_000


def test_case_29_a_silent_stream_ends_after_the_idle_time() -> None:
    with EventServer(SOME[:1], keepalive_s=60) as server, Tokens().client(server).connected() as connection:
        deliveries = list(islice(connection.deliveries(CHANNEL, CUSTOM, b"start", 1), 2))
    assert [len(one.events) for one in deliveries] == [1, 0]
    assert deliveries[1] == Delivery((), b"")


def test_the_latest_position_of_a_quiet_channel_comes_from_a_keepalive(connection: Connection) -> None:
    assert connection.latest_position(CHANNEL).replay_id == b"far"


def test_reading_the_status_costs_one_delivery(server: EventServer, connection: Connection) -> None:
    assert connection.peek(CHANNEL, b"start", 5).events == (SOME[0],)
    assert server.delivered == 1
    assert connection.peek(CHANNEL, SOME[-1].replay_id, 5).latest == b"far"


def test_a_broken_stream_continues_after_the_last_event(server: EventServer, connection: Connection) -> None:
    server.failures = [Failure("Subscribe", UNAVAILABLE, after=70), Failure("Subscribe", UNAVAILABLE, after=130)]
    assert until_quiet(connection) == SOME
    assert [request.replay_id for request in server.seen if request.replay_id] == [
        b"start",
        SOME[69].replay_id,
        SOME[199].replay_id,
    ]


def test_an_unreachable_stream_is_given_up_after_growing_pauses(
    server: EventServer, connection: Connection, tokens: Tokens
) -> None:
    server.failures = [Failure("Subscribe", UNAVAILABLE, "service.unavailable") for _ in range(TRIES)]
    with pytest.raises(SourceUnavailable, match=r"CON013.*service.unavailable"):
        until_quiet(connection)
    assert len(tokens.waited) == TRIES - 1
    assert all(0.5 * 2**n <= pause <= 2**n for n, pause in enumerate(tokens.waited, 1))


def test_a_token_that_expires_in_a_stream_is_renewed_once_and_the_stream_continues(server: EventServer) -> None:
    tokens = Tokens([SECRET, "second"])
    server.failures = [Failure("Subscribe", grpc.StatusCode.UNAUTHENTICATED, "service.auth.error", after=90)]
    server.accepted.add("second")
    with tokens.client(server).connected() as connection:
        assert until_quiet(connection) == SOME
    assert (tokens.renewals, tokens.waited) == (1, [])


def test_a_token_that_is_refused_again_is_not_renewed_in_a_loop(server: EventServer) -> None:
    tokens = Tokens(["wrong", "wrong too"])
    with tokens.client(server).connected() as connection, pytest.raises(SourceUnavailable, match="CON009"):
        until_quiet(connection)
    assert tokens.renewals == 1


def test_case_26_an_expired_replay_id_is_a_lost_position_and_never_another_position(
    server: EventServer, connection: Connection
) -> None:
    with pytest.raises(PositionLost, match=r"SRC013.*corrupted") as lost:
        until_quiet(connection, b"aged out")
    assert isinstance(lost.value, Blocked) and not lost.value.retryable
    assert [request.replay_preset for request in server.seen] == [CUSTOM]


def test_case_30_used_up_deliveries_end_the_run_without_retries(
    server: EventServer, connection: Connection, tokens: Tokens
) -> None:
    used_up = Failure("Subscribe", grpc.StatusCode.RESOURCE_EXHAUSTED, "subscription.limit.exceeded", after=100)
    server.failures = [used_up]
    with pytest.raises(SourceUnavailable, match=r"SRC041.*24 hours are used up"):
        until_quiet(connection)
    assert (len(server.seen), tokens.waited) == (2, [])


@pytest.mark.parametrize("preset", [LATEST, EARLIEST])
def test_the_ends_of_a_channel_can_be_read(preset: int, connection: Connection) -> None:
    assert len(until_quiet(connection, b"", preset)) == (250 if preset else 0)


def test_whether_a_topic_may_be_read_is_known(server: EventServer, connection: Connection) -> None:
    server.topics["/data/ContactChangeEvent"] = False
    assert connection.topic(CHANNEL).can_subscribe
    assert not connection.topic("/data/ContactChangeEvent").can_subscribe
    with pytest.raises(CheckFailed, match=r"SRC048.*/data/NoChangeEvent"):
        connection.topic("/data/NoChangeEvent")


def test_a_schema_is_requested_once_for_all_connections(server: EventServer, tokens: Tokens) -> None:
    client = tokens.client(server)
    for _ in range(2):
        with client.connected() as connection:
            assert connection.schema("account-1").entity == "Account"
    assert server.asked_for_schemas == ["account-1"]


def test_an_invalid_schema_is_unreadable(connection: Connection) -> None:
    with pytest.raises(DecodeError, match="schema elsewhere"):
        connection.schema("elsewhere")


@pytest.mark.parametrize("code", sorted(PUBSUB))
def test_every_code_has_a_message_and_a_remedy(code: str) -> None:
    failure = pubsub_failure(code, "UNKNOWN", "m", "w")
    (problem,) = failure.problems
    assert problem.what and problem.do and code in problem.found


def test_an_unknown_code_is_not_retried_and_a_broken_connection_is() -> None:
    assert isinstance(pubsub_failure("something.new", "UNKNOWN", "", "w"), CheckFailed)
    assert isinstance(pubsub_failure("", "UNAVAILABLE", "", "w"), SourceUnavailable)


def test_no_error_contains_the_token(server: EventServer, connection: Connection) -> None:
    for failing in (Failure("GetTopic", grpc.StatusCode.INTERNAL, "topic.not.found"), Failure("GetTopic", UNAVAILABLE)):
        server.failures = [failing] * TRIES
        with pytest.raises(CdcError) as raised:
            connection.topic(CHANNEL)
        assert SECRET not in str(raised.value) and SECRET not in repr(raised.value)

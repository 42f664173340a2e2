"""The Pub/Sub service of the sandbox org: flow control, replay, schemas, permissions, limits, ordered faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
import pytest

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg, fields
from airflow_cdc_provider.sandbox.salesforce.bus import Entry
from airflow_cdc_provider.sandbox.salesforce.channels import Member
from airflow_cdc_provider.sandbox.salesforce.faults import RpcFault
from airflow_cdc_provider.sandbox.salesforce.users import Access
from tests.connectors.salesforce_bus import ALL, CUSTOM, LATEST, ReceivedEvent, Subscriber, error_code

pytestmark = pytest.mark.server
ACCOUNTS = "/data/AccountChangeEvent"


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.1) as org:
        yield org


@pytest.fixture
def subscriber(org: SalesforceOrg) -> Subscriber:
    return Subscriber(org)


def write(org: SalesforceOrg, *names: str) -> None:
    """One transaction per account."""
    for name in names:
        with org.transaction() as tx:
            tx.insert("Account", {"Name": name})


def names_of(events: list[ReceivedEvent]) -> list[object]:
    return [event.body["Name"] for event in events]


def refused(subscriber: Subscriber, preset: int = LATEST, replay_id: bytes = b"", topic: str = ALL) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as failure:
        subscriber.read(preset, replay_id, topic)
    return failure.value.code().name, error_code(failure.value)


def test_all_retained_events_are_read_from_the_earliest_on(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A", "B", "C")
    events = subscriber.read()
    assert names_of(events) == ["A", "B", "C"]
    assert all(len(event.replay_id) == 10 for event in events)
    assert len({event.replay_id for event in events}) == 3


def test_a_custom_replay_continues_after_the_event_of_its_id(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A", "B", "C")
    first = subscriber.read()[0]
    assert names_of(subscriber.read(CUSTOM, first.replay_id)) == ["B", "C"]


def test_latest_receives_only_later_events(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A")
    with subscriber.stream(LATEST) as stream:
        stream.ask(1)
        assert list(stream.next().events) == []
        write(org, "B")
        (event,) = stream.next().events
        assert subscriber.decoded(event).body["Name"] == "B"


def test_no_more_events_are_sent_than_were_requested(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, *"ABCDE")
    with subscriber.stream() as stream:
        stream.ask(2)
        answer = stream.next()
        assert (len(answer.events), answer.pending_num_requested) == (2, 0)
        assert answer.latest_replay_id == answer.events[-1].replay_id
        stream.ask(1)
        stream.ask(1)
        received = 0
        while received < 2:
            received += len(stream.next().events)
        stream.ask(100)
        stream.ask(100)
        answer = stream.next()
        assert len(answer.events) == 1 and answer.pending_num_requested in (99, 100)


def test_an_answer_may_have_fewer_events_than_were_requested(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.pubsub.response_events = 2
    write(org, *"ABC")
    with subscriber.stream() as stream:
        stream.ask(50)
        pending = [(len(one.events), one.pending_num_requested) for one in (stream.next(), stream.next())]
    assert pending == [(2, 48), (1, 47)]


def test_a_keepalive_advances_a_quiet_subscriber(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A")
    with org.transaction() as tx:
        tx.insert("Contact", {"LastName": "Doe"})
    with subscriber.stream(topic=ACCOUNTS) as stream:
        stream.ask(100)
        event = stream.next().events[0]
        quiet = stream.next()
        assert list(quiet.events) == [] and quiet.pending_num_requested == 99
        assert quiet.latest_replay_id != event.replay_id
    write(org, "B")
    assert names_of(subscriber.read(CUSTOM, quiet.latest_replay_id, ACCOUNTS)) == ["B"]


def test_a_keepalive_never_has_a_position_behind_an_event_committed_meanwhile(
    org: SalesforceOrg, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = org.bus.latest

    def commit_meanwhile() -> Entry:
        writer = threading.Thread(target=write, args=(org, "A"))
        writer.start()
        writer.join(0.2)  # cannot end earlier, if the bus is locked for a keepalive
        monkeypatch.undo()
        return position()

    monkeypatch.setattr(org.bus, "latest", commit_meanwhile)
    with subscriber.stream(LATEST) as stream:
        stream.ask(1)
        quiet = stream.next()
    assert list(quiet.events) == []
    assert names_of(subscriber.read(CUSTOM, quiet.latest_replay_id)) == ["A"]


def test_large_events_are_sent_in_answers_of_three_megabytes(org: SalesforceOrg, subscriber: Subscriber) -> None:
    with org.transaction() as tx:
        for number in range(10):
            tx.insert("Invoice__c", {"Letter__c": str(number) * 131_072, "Terms__c": "x" * 32_000})
    with org.transaction() as tx:
        for number in range(20):
            tx.insert("Invoice__c", {"Letter__c": str(number % 10) * 131_072})
    with subscriber.stream() as stream:
        stream.ask(100)
        sizes = []
        while (answer := stream.next()).events:
            sizes.append(answer.ByteSize())
    assert len(sizes) == 2 and max(sizes) < 3_100_000


def test_a_keepalive_of_an_idle_org_is_valid_after_the_last_event_expired(
    org: SalesforceOrg, subscriber: Subscriber
) -> None:
    write(org, "A")
    old = subscriber.read()[0].replay_id
    for _ in range(4):
        org.clock.advance(24 * 3600)
        subscriber = Subscriber(org)
        with subscriber.stream(LATEST) as stream:
            stream.ask(1)
            quiet = stream.next().latest_replay_id
    write(org, "B")
    assert refused(subscriber, CUSTOM, old) == ("INVALID_ARGUMENT", "subscription.fetch.replayid.corrupted")
    assert names_of(subscriber.read(CUSTOM, quiet)) == ["B"]


@pytest.mark.parametrize("reason", ["aged out", "org moved", "corrupted", "another channel", "8 bytes"])
def test_an_unknown_replay_id_is_corrupted_whatever_the_reason(
    org: SalesforceOrg, subscriber: Subscriber, reason: str
) -> None:
    write(org, "A", "B")
    replay_id, topic = subscriber.read()[0].replay_id, ALL
    match reason:
        case "aged out":
            org.clock.advance(73 * 3600)
            write(org, "C")
            subscriber = Subscriber(org)
        case "org moved":
            org.migrate()
        case "corrupted":
            replay_id = replay_id[:7] + bytes([replay_id[7] ^ 1]) + replay_id[8:]
        case "another channel":
            topic = ACCOUNTS
        case "8 bytes":
            replay_id = replay_id[:8]
    status = refused(subscriber, CUSTOM, replay_id, topic)
    assert status == ("INVALID_ARGUMENT", "subscription.fetch.replayid.corrupted")


def test_a_stream_has_old_and_new_schemas(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A")
    org.change_field("Account", fields.text("Nick__c", 40))
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "B", "Nick__c": "Bee"})
    old, new = subscriber.read()
    assert old.schema_id != new.schema_id
    assert (old.body["Name"], new.body["Nick__c"]) == ("A", "Bee")
    assert subscriber.topic(ACCOUNTS).schema_id == new.schema_id


def test_a_channel_of_several_objects_has_no_schema_of_its_own(org: SalesforceOrg, subscriber: Subscriber) -> None:
    assert subscriber.topic(ALL).schema_id == ""
    with pytest.raises(grpc.RpcError) as failure:
        subscriber.schema("")
    assert (failure.value.code().name, error_code(failure.value)) == ("INVALID_ARGUMENT", "schema.validation.failed")


def test_custom_channels_carry_their_members(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.channels.custom["People__chn"] = [Member("Contact")]
    write(org, "A")
    with org.transaction() as tx:
        tx.insert("Contact", {"LastName": "Doe"})
    (event,) = subscriber.read(topic="/data/People__chn")
    assert event.header["entityName"] == "Contact"


def test_a_filter_omits_records_and_enriched_fields_are_in_updates_and_deletes(
    org: SalesforceOrg, subscriber: Subscriber
) -> None:
    """Each record then has an event of its own, and all events of one change have one replay id."""
    org.channels.custom["Work__chn"] = [Member("Account", "Type = 'Customer'", ("AccountNumber",))]
    values = {"Type": "Customer", "AccountNumber": "7"}
    one, two, other = org.load("Account", [{"Name": "A", **values}, {"Name": "B", **values}, {"Name": "C"}])
    with org.transaction() as tx:
        tx.update_many("Account", [one, two, other], {"Phone": "1"})
    with org.transaction() as tx:
        tx.delete("Account", one)
    wide = subscriber.read()
    assert [len(event.header["recordIds"]) for event in wide] == [3, 1]
    assert "AccountNumber" not in wide[0].body
    first, second, gone = subscriber.read(topic="/data/Work__chn")
    assert (first.header["recordIds"], second.header["recordIds"]) == ([one], [two])
    assert first.replay_id == second.replay_id != gone.replay_id
    assert first.header["changedFields"] == wide[0].header["changedFields"]
    assert (first.body["Phone"], first.body["AccountNumber"], first.body["Type"]) == ("1", "7", "Customer")
    assert gone.body["AccountNumber"] == "7" and "Phone" not in gone.body


@pytest.mark.parametrize("topic", ["/data/NothingChangeEvent", "/data/TaskChangeEvent", "/data/accountchangeevent"])
def test_a_missing_topic_is_not_found(subscriber: Subscriber, topic: str) -> None:
    assert refused(subscriber, topic=topic) == ("NOT_FOUND", "topic.not.found")


def test_without_view_all_a_single_channel_refuses_and_a_wide_one_is_silent(
    org: SalesforceOrg, subscriber: Subscriber
) -> None:
    write(org, "A")
    org.integration.access["Account"] = Access.OWN
    assert subscriber.read() == []
    status = refused(subscriber, topic=ACCOUNTS)
    assert status == ("PERMISSION_DENIED", "subscription.topic.cannot.subscribe")


def test_hidden_fields_are_null_in_events_and_present_in_the_schema(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.integration.hidden |= {("Account", "Phone"), ("Account", "BillingCity")}
    with org.transaction() as tx:
        tx.insert("Account", {"Name": "A", "Phone": "1", "BillingCity": "Ulm", "BillingStreet": "1 Road"})
    (event,) = subscriber.read()
    assert "Phone" not in event.body
    assert (event.body["BillingAddress"]["City"], event.body["BillingAddress"]["Street"]) == (None, "1 Road")
    names = {field["name"] for field in subscriber.schema(event.schema_id)["fields"]}
    assert "Phone" in names


def test_an_invalid_token_is_an_auth_error(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.tokens.expire()
    assert refused(subscriber) == ("UNAUTHENTICATED", "service.auth.error")
    subscriber.token = " "
    assert refused(subscriber) == ("UNAUTHENTICATED", "service.auth.headers.invalid")


def test_an_open_stream_outlives_its_token(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A", "B")
    with subscriber.stream() as stream:
        stream.ask(1)
        stream.next()
        org.tokens.expire()
        stream.ask(1)
        assert len(stream.next().events) == 1


@pytest.mark.parametrize(
    ("request_more", "code"),
    [
        ({"num_requested": 0}, "subscription.fetch.requested.events.invalid"),
        ({"num_requested": 5, "topic_name": ACCOUNTS}, "subscription.fetch.topic.mismatch"),
    ],
)
def test_a_request_against_the_protocol_ends_the_stream(
    org: SalesforceOrg, subscriber: Subscriber, request_more: dict[str, object], code: str
) -> None:
    write(org, "A")
    with subscriber.stream() as stream:
        stream.ask(1)
        stream.next()
        stream.ask(int(str(request_more.pop("num_requested"))), **request_more)
        with pytest.raises(grpc.RpcError) as failure:
            stream.next()
    assert error_code(failure.value) == code


def test_custom_without_a_replay_id_is_refused(subscriber: Subscriber) -> None:
    assert refused(subscriber, CUSTOM)[1] == "subscription.fetch.replayid.validation.failed"


def test_a_client_that_requests_nothing_is_disconnected(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.pubsub.idle_limit_s = 0.1
    write(org, "A")
    with subscriber.stream() as stream:
        stream.ask(1)
        stream.next()
        with pytest.raises(grpc.RpcError) as failure:
            stream.next()
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_daily_allocation_counts_repeated_deliveries(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A", "B")
    org.bus.allocation = 5
    assert len(subscriber.read()) == len(subscriber.read()) == 2
    assert refused(subscriber, preset=1) == ("RESOURCE_EXHAUSTED", "subscription.limit.exceeded")
    org.clock.advance(25 * 3600)
    assert len(Subscriber(org).read()) == 2


def test_a_stream_may_be_dropped_after_some_events_with_a_code_or_without(
    org: SalesforceOrg, subscriber: Subscriber
) -> None:
    write(org, *"ABCDE")
    org.faults.rpc += [RpcFault("Subscribe", after_events=2), RpcFault("Subscribe", "service.unavailable")]
    with subscriber.stream() as stream:
        stream.ask(100)
        received = list(stream.next().events)
        with pytest.raises(grpc.RpcError) as failure:
            stream.next()
    assert len(received) == 2 and error_code(failure.value) == ""
    assert refused(subscriber) == ("UNAVAILABLE", "service.unavailable")
    assert names_of(subscriber.read(CUSTOM, received[-1].replay_id)) == ["C", "D", "E"]


def test_topics_and_schemas_fail_as_ordered(org: SalesforceOrg, subscriber: Subscriber) -> None:
    org.faults.rpc += [RpcFault("GetTopic", "topic.api.unavailable"), RpcFault("GetSchema", "schema.api.unavailable")]
    with pytest.raises(grpc.RpcError) as failure:
        subscriber.topic(ACCOUNTS)
    assert error_code(failure.value) == "topic.api.unavailable"
    schema_id = subscriber.topic(ACCOUNTS).schema_id
    with pytest.raises(grpc.RpcError):
        subscriber.schema(schema_id)
    assert subscriber.schema(schema_id)["name"] == "com.sforce.eventbus.AccountChangeEvent"


def test_an_event_may_be_sent_twice_under_another_replay_id(org: SalesforceOrg, subscriber: Subscriber) -> None:
    write(org, "A")
    org.bus.repeat(1)
    first, again = subscriber.read()
    assert first.header == again.header and first.replay_id != again.replay_id


def test_a_refreshed_sandbox_is_another_org(org: SalesforceOrg, subscriber: Subscriber) -> None:
    before = org.org_id
    org.refresh()
    assert org.org_id != before
    assert refused(subscriber)[1] == "service.auth.error"
    assert Subscriber(org).topic(ALL).tenant_guid == org.org_id
    assert list(org.store.table("Organization").rows) == [org.org_id]


def test_many_streams_are_open_at_once(org: SalesforceOrg, subscriber: Subscriber) -> None:
    streams = [subscriber.stream(LATEST) for _ in range(8)]
    opened = [stream.__enter__() for stream in streams]
    try:
        for stream in opened:
            stream.ask(1)
            stream.next()
        write(org, "A")
        assert all(next(one for one in iter(stream.next, None) if one.events) for stream in opened)
    finally:
        for one in streams:
            one.__exit__(None, None, None)

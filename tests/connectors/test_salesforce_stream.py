"""A channel drained into stream items: from a position until it is silent, and after failures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from airflow_cdc_provider.connectors.source import Boundary, CutShort, Ignored, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce import stream, subscription
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema
from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, channel_position, position_of
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.stream import read_stream
from airflow_cdc_provider.core.errors import PositionLost, SourceUnavailable
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.schema import TableSchema
from tests.connectors import salesforce_events as org
from tests.connectors.salesforce_events import CHANNEL, NOON_MS, event, task, updated
from tests.connectors.salesforce_http import ROOT, VERSION, Answer, HttpServer, http, refused
from tests.connectors.salesforce_pubsub import EventServer, Failure, Tokens, numbered

pytestmark = pytest.mark.server

START = position_of(CHANNEL, ChannelPosition(b"start", 0))
OPTIONS = SalesforceOptions(idle=timedelta(seconds=2))
EVENTS = numbered([updated(tx=f"tx-{n // 3}", seq=n % 3 + 1, Phone=str(n)) for n in range(30)])
USED_UP = Failure("Subscribe", grpc.StatusCode.RESOURCE_EXHAUSTED, "subscription.limit.exceeded")


@contextmanager
def channel(events: Sequence[ChannelEvent], describe: Answer | None = None) -> Iterator[tuple[EventServer, Any]]:
    """A server, and a function that drains it from a position. ``describe``: the answer of REST for every object."""
    with HttpServer() as rest, EventServer(list(events), keepalive_s=0.02, latest=b"far") as server:
        rest.on("GET", f"{ROOT}/limits", Answer({}))
        for entity, answer in org.DESCRIBES.items():
            rest.on("GET", f"{ROOT}/sobjects/{entity}/describe", describe or Answer(answer))

        def drain(lo: Position = START, *tables: str) -> Iterator[StreamItem]:
            tasks = [task(table) for table in tables or ("Account",)]
            with Tokens().client(server).connected() as connection:
                yield from read_stream(connection, Rest(http(rest), VERSION), OPTIONS, lo, tasks, 1)

        yield server, drain


def ends(items: Sequence[object]) -> list[Position]:
    return [item.position for item in items if isinstance(item, Boundary)]


def without_time(items: Iterable[object]) -> list[object]:
    """The last position has the time of a keepalive."""
    return [(item.position[CHANNEL].split(" ")[:2] if isinstance(item, Boundary) else item) for item in items]


def last(items: Sequence[object]) -> tuple[bytes, int]:
    position = channel_position(ends(items)[-1], CHANNEL)
    return position.replay_id, position.transactions


def phones(items: Sequence[object]) -> list[str]:
    return [str(item.event_id) for item in items if isinstance(item, ChangeRecord)]


def test_a_drain_gives_whole_transactions_and_ends_at_the_end_of_the_channel() -> None:
    with channel(EVENTS) as (_, drain):
        items = list(drain())
    assert isinstance(items[0], TableSchema)
    assert len(phones(items)) == 30 and len(ends(items)) == 10
    assert last(items) == (b"far", 10)


def test_the_time_of_a_silent_end_is_that_of_the_org(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this host is ten minutes slow."""
    slow = SimpleNamespace(time=lambda: time.time() - 600)
    for module in (stream, subscription):
        monkeypatch.setattr(module, "time", slow)
    with channel(EVENTS) as (_, drain):
        end = channel_position(ends(list(drain()))[-1], CHANNEL)
    assert abs(end.at_s - time.time()) < 60


def test_case_09_a_drain_from_any_boundary_gives_exactly_the_rest() -> None:
    with channel(EVENTS) as (_, drain):
        whole = list(drain())
        for end in ends(whole)[:-1:4]:
            at = whole.index(Boundary(end))
            assert phones(list(drain(end))) == phones(whole[at:])
            assert [r.order_key for r in drain(end) if isinstance(r, ChangeRecord)] == [
                r.order_key for r in whole[at:] if isinstance(r, ChangeRecord)
            ]


def test_a_window_ends_after_the_transaction_of_an_overflow_and_the_next_begins_there() -> None:
    gone = numbered([event("GAP_OVERFLOW", ["000000000000000AAA"], tx="tx-9", seq=9)])[0]._replace(replay_id=b"gone")
    with channel([*EVENTS, gone, *numbered([updated(tx="x", Phone="x")])]) as (_, drain):
        first = list(drain())
        assert last(first) == (b"gone", 10)
        assert [item.op for item in first if isinstance(item, ChangeRecord)][-1] == "overflow"
        assert [item.tx_id for item in drain(ends(first)[-1]) if isinstance(item, ChangeRecord)] == ["x"]


class BusyChannel:
    """A transaction in every second of the org's clock, without end, four in a delivery. ``event_of``: the event of a
    transaction of this name, committed at this time."""

    def __init__(self, event_of: Callable[[str, int], ChannelEvent]) -> None:
        self.delivered = 0
        self.event_of = event_of

    def deliveries(self, *_: object) -> Iterator[Delivery]:
        for first in itertools.count(0, 4):
            assert first < 60, "the window does not end"
            self.delivered += 4
            yield Delivery(tuple(self._event(second) for second in range(first, first + 4)))

    def _event(self, second: int) -> ChannelEvent:
        made = self.event_of(f"tx-{second}", NOON_MS + second * 1000)
        return made._replace(replay_id=f"replay-{second}".encode())

    def schema(self, schema_id: str) -> EventSchema:
        return org.event_schema(schema_id)

    def read(self, lo: Position, now_s: int) -> list[StreamItem]:
        """``now_s``: the org's clock, in seconds after noon."""
        now = datetime.fromtimestamp(NOON_MS // 1000 + now_s, UTC)
        rest = SimpleNamespace(now=lambda: now, describe=org.described_as)
        return list(read_stream(self, rest, OPTIONS, lo, [task("Account")], 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("entity", ["Account", "Contact"])
def test_a_window_of_a_channel_that_is_never_silent_ends_at_the_time_of_the_org_at_which_it_began(entity: str) -> None:
    """Also if no event belongs to a table of ours. Every transaction that was committed before is in the window."""
    schema = f"{entity.lower()}-1"
    busy = BusyChannel(lambda tx, at_ms: event("DELETE", entity=entity, schema=schema, tx=tx, at_ms=at_ms))
    items = busy.read(START, now_s=10)
    assert last(items) == (b"replay-11", 12) and busy.delivered == 16
    assert isinstance(items[-1], Boundary)
    kept = [item for item in items if isinstance(item, ChangeRecord | Ignored)]
    assert len(kept) == 12


def test_case_30_changes_delivered_before_the_allocation_ended_are_used_and_the_next_run_fails() -> None:
    with channel(EVENTS) as (server, drain):
        server.failures = [Failure("Subscribe", USED_UP.status, USED_UP.code, after=7)]
        items = list(drain())
        assert len(ends(items)) == 2, "the end of the third transaction is unknown"
        assert items[-1] == CutShort()
        server.failures = [USED_UP]
        with pytest.raises(SourceUnavailable, match="SRC041"):
            list(drain(ends(items)[-1]))


def test_a_failure_before_the_end_of_any_transaction_is_raised() -> None:
    with channel(EVENTS) as (server, drain):
        server.failures = [Failure("Subscribe", USED_UP.status, USED_UP.code, after=2)]
        with pytest.raises(SourceUnavailable, match="SRC041"):
            list(drain())


def test_case_26_an_expired_position_is_lost() -> None:
    with channel(EVENTS) as (_, drain), pytest.raises(PositionLost, match="SRC013"):
        list(drain(position_of(CHANNEL, ChannelPosition(b"aged out", 4))))


def test_a_stream_that_breaks_within_a_transaction_keeps_it_whole() -> None:
    with channel(EVENTS) as (server, drain):
        whole = without_time(drain())
        server.failures = [Failure("Subscribe", grpc.StatusCode.UNAVAILABLE, after=4)]
        assert without_time(drain()) == whole


def test_an_object_that_cannot_be_described_now_can_be_retried() -> None:
    used_up = refused(403, "REQUEST_LIMIT_EXCEEDED")
    with channel(EVENTS, used_up) as (_, drain), pytest.raises(SourceUnavailable, match="SRC040"):
        list(drain())


def test_case_28_an_idle_channel_advances_the_position() -> None:
    with channel([]) as (_, drain):
        assert last(list(drain())) == (b"far", 0)


def test_an_unreadable_event_is_emitted_in_order() -> None:
    broken = EVENTS[4]._replace(payload=b"\0")
    with channel([*EVENTS[:4], broken, *EVENTS[5:]]) as (_, drain):
        items = list(drain())
    records = [item for item in items if isinstance(item, ChangeRecord)]
    assert [at for at, record in enumerate(records) if record.op == "unreadable"] == [4] and len(records) == 30

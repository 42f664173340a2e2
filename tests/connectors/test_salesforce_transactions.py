"""Transactions in a stream without their ends, and events that are delivered again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.connectors.duplicates import drop_duplicates
from airflow_cdc_provider.connectors.source import Boundary, Ignored
from airflow_cdc_provider.connectors.sources.salesforce.events import Delivery
from airflow_cdc_provider.connectors.sources.salesforce.positions import (
    ChannelPosition,
    channel_position,
    floor_key,
    order_key,
    position_of,
)
from airflow_cdc_provider.core.errors import PositionLost
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from tests.connectors.salesforce_events import (
    ADA,
    BOB,
    CHANNEL,
    EVE,
    NOON_MS,
    QUIET_S,
    START,
    Reading,
    event,
    replay_id,
    task,
    updated,
)

NOON_S = NOON_MS // 1000


def boundary(behind: bytes, transactions: int, at_s: int = NOON_S) -> Boundary:
    return Boundary(position_of(CHANNEL, ChannelPosition(behind, transactions, at_s)))


def ends(items: list[object]) -> list[Boundary]:
    return [item for item in items if isinstance(item, Boundary)]


def test_a_transaction_ends_where_another_one_begins() -> None:
    a1, a2, b1 = updated(tx="a", seq=1, Phone="1"), updated(tx="a", seq=2, Phone="2"), updated(tx="b", Phone="3")
    items = Reading().items(a1, a2, b1)
    assert ends(items) == [boundary(a2.replay_id, 8)]
    assert [type(item) for item in items[1:]] == [ChangeRecord, ChangeRecord, Boundary, ChangeRecord]


def test_case_08_overflows_of_one_transaction_have_one_anchor_at_its_end() -> None:
    reading = Reading(task("Account"), task("Contact"))
    gone = event("GAP_OVERFLOW", ["000000000000000AAA"], tx="a", seq=2)
    more = event("GAP_OVERFLOW", ["000000000000000AAA"], tx="a", seq=3, schema="contact-1", entity="Contact")
    next_one = updated(tx="b", Phone="1")
    items = reading.items(updated(tx="a", seq=1, Phone="0"), gone, more, next_one)
    assert [item.table for item in items if isinstance(item, ChangeRecord)] == ["Account", "Account", "Contact"]
    assert items[-1] == boundary(more.replay_id, 8), "the window ends there"
    assert reading.decoder.ended


def test_an_overflow_ends_its_window_also_without_a_following_transaction() -> None:
    reading = Reading()
    gone = event("GAP_OVERFLOW", ["000000000000000AAA"])
    reading.items(gone)
    assert not reading.decoder.ended, "more events of the transaction may follow"
    assert reading.quiet() == [boundary(gone.replay_id, 8)]
    assert reading.decoder.ended


def test_case_09_a_transaction_without_a_known_end_gives_no_position() -> None:
    whole, half = updated(tx="a", Phone="1"), updated(tx="b", Phone="2")
    (end,) = ends(Reading().items(whole, half))
    again = Reading(position=channel_position(end.position, CHANNEL))
    assert [record.tx_id for record in again.decode(half)] == ["b"]


def test_case_10_a_quiet_stream_closes_the_last_transaction() -> None:
    last = updated(tx="a", Phone="1")
    by_silence, by_keepalive = Reading(), Reading()
    by_silence.items(last)
    assert by_silence.quiet() == [boundary(last.replay_id, 8)]
    by_keepalive.items(last)
    latest = replay_id()
    assert by_keepalive.quiet(latest) == [boundary(latest, 8, QUIET_S)]


def test_case_11_missing_sequence_numbers_are_not_waited_for() -> None:
    records = Reading().decode(updated(seq=2, Phone="1"), updated([BOB], seq=90, Phone="1"), updated(tx="b", Phone="1"))
    assert [record.tx_seq for record in records] == [2, 90, 1]


def test_case_12_changes_of_one_record_in_a_transaction_are_applied_in_sequence() -> None:
    first, second = updated(seq=5, Phone="new"), updated(seq=3, Phone="old")
    late, early = Reading().decode(first, second)
    assert (late.tx_seq, early.tx_seq) == (5, 3)
    assert early.order_key < late.order_key


def test_case_28_the_position_of_an_idle_channel_advances_with_its_keepalives() -> None:
    reading, latest = Reading(), replay_id()
    assert reading.quiet(latest) == [boundary(latest, START.transactions, QUIET_S)]
    assert reading.quiet(latest) == [], "once is enough"
    assert reading.quiet() == []


def test_a_keepalive_does_not_move_the_position_past_an_open_transaction() -> None:
    reading = Reading()
    reading.items(updated(tx="a", Phone="1"))
    latest = replay_id()
    assert reading.quiet(latest) == [boundary(latest, 8, QUIET_S)]
    assert [record.order_key[8:24] for record in reading.decode(updated(tx="b", Phone="1"))] == [f"{9:016x}"]


def test_transactions_are_ordered_by_their_position_in_the_stream_whatever_the_replay_ids() -> None:
    records = Reading().decode(*(updated(tx=str(n), seq=9 - n, Phone="1") for n in range(9)))
    keys = [record.order_key for record in records]
    assert keys == sorted(keys) and len(set(map(len, keys))) == 1


def test_reading_on_from_a_boundary_gives_the_order_keys_of_reading_through() -> None:
    events = [updated([ADA, BOB], tx=str(n // 3), seq=n % 3 + 1, Phone=str(n)) for n in range(9)]
    through = Reading()
    whole = [record.order_key for record in through.decode(*events)]
    first = Reading()
    items = first.items(*events[:4])
    (end,) = ends(items)
    cut = [item.order_key for item in items if isinstance(item, ChangeRecord)][:6]
    rest = Reading(position=channel_position(end.position, CHANNEL)).decode(*events[3:])
    assert cut + [record.order_key for record in rest] == whole


def test_a_floor_is_after_all_changes_up_to_its_position_and_before_all_later_ones() -> None:
    position = ChannelPosition(b"x", 41)
    assert order_key(1, 41, 0xFFFFFFFF, 0xFFFFFFFF) <= floor_key(1, position) < order_key(1, 42, 0, 1)
    assert floor_key(1, position) < order_key(2, 1, 1, 1), "a later epoch is later"


def test_every_position_contains_the_instance() -> None:
    reading = Reading(position=ChannelPosition(b"x", 5, 6, "EU44"))
    found = ends(reading.items(updated(tx="a", Phone="1"), updated(tx="b", Phone="1"))) + ends(reading.quiet(b"z"))
    assert [channel_position(end.position, CHANNEL).instance for end in found] == ["EU44"] * len(found) and len(
        found
    ) == 2


@given(st.binary(max_size=20), st.integers(0, 1 << 60), st.integers(0, 1 << 36))
def test_a_replay_id_of_any_bytes_is_read_back_from_its_position(replay: bytes, count: int, at_s: int) -> None:
    assert channel_position(position_of(CHANNEL, ChannelPosition(replay, count, at_s)), CHANNEL) == ChannelPosition(
        replay, count, at_s
    )


def test_the_age_of_a_position_can_be_shown() -> None:
    (end,) = ends(Reading().items(updated(tx="a", Phone="1"), updated(tx="b", Phone="1")))
    assert end.position[CHANNEL].endswith(" 2026-03-01T12:00:00Z")


def test_a_position_of_another_channel_is_refused() -> None:
    with pytest.raises(PositionLost, match=r"SRC013.*Custom__chn"):
        channel_position({CHANNEL: "1 AA== 2026-03-01T12:00:00Z"}, "/data/Custom__chn")


def test_case_16_an_event_delivered_again_later_under_a_new_replay_id_is_dropped() -> None:
    (first,) = Reading().decode(updated(Phone="1"))
    reading = Reading(position=ChannelPosition(b"later", 900))
    items = list(drop_duplicates(reading.items(updated(Phone="1"), updated([BOB], Phone="2")), {first.event_id}))
    assert Ignored(1) in items
    assert [item.key for item in items if isinstance(item, ChangeRecord)] == [f'["{BOB}"]']


def test_case_16_duplicates_within_a_window_are_dropped_too_and_gaps_are_kept() -> None:
    gap = event("GAP_UPDATE", [EVE], seq=2)
    items = Reading().items(updated(Phone="1"), updated(Phone="1"), gap, gap)
    assert [i.op for i in drop_duplicates(items, ()) if isinstance(i, ChangeRecord)] == ["update", "gap", "gap"]


def test_another_sequence_record_or_type_in_the_transaction_is_no_duplicate() -> None:
    events = [
        updated(Phone="1"),
        updated(seq=2, Phone="1"),
        updated([BOB], Phone="1"),
        event("DELETE"),
        updated(tx="b", Phone="1"),
    ]
    assert Ignored(1) not in list(drop_duplicates(Reading().items(*events), ()))


def test_transactions_may_be_split_over_deliveries_anywhere() -> None:
    events = [updated(tx=str(n // 4), seq=n % 4, Phone=str(n)) for n in range(12)]
    whole = [*Reading().items(*events)]
    cut = Reading()
    for one in events:
        cut.decoder.feed(Delivery((one,)))
    assert cut.items() == whole

"""Positions of changes that come from one server, or from two."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from airflow_cdc_provider.core.log.change_log import EXPIRED, Manifest, TableSlice
from airflow_cdc_provider.core.log.server_orders import OrderOfMessages, ServerOrder, join_orders
from airflow_cdc_provider.core.serde import from_plain, to_plain
from spark_jobs.windows.changed_servers import known_orders, with_orders

Change = tuple[str, int, str]
CIRCULAR: list[Change] = [("a", 1, "1"), ("b", 7, "2"), ("a", 2, "3"), ("b", 8, "4"), ("a", 3, "5")]
"""A server that also has the changes of another one: their numbers are independent."""


def order_of(*changes: Change, start: int = 0, channel: str = "p/0") -> ServerOrder:
    order = OrderOfMessages(channel, "d.t", start)
    for change in changes:
        order.add(*change)
    return order.order


def goes_back(before: ServerOrder, *later: ServerOrder) -> bool:
    return any(one.back for one in join_orders([before], later))


def test_changes_of_another_server_with_lower_positions_go_back() -> None:
    assert order_of(("a", 9, "50"), ("b", 1, "30")).back.keys() == {"b"}
    assert goes_back(order_of(("a", 9, "50")), order_of(("b", 1, "30")))
    assert goes_back(order_of(("a", 9, "50")), order_of(("b", 1, "30"), ("b", 2, "60"))), "although it overtakes"
    assert goes_back(order_of(("a", 9, "50")), order_of(("b", 1, "70")), order_of(("a", 10, "51"), start=9)), "and back"


def test_changes_that_were_sent_again_do_not_hide_later_ones_that_go_back() -> None:
    before = order_of(("b", 7, "70"), ("a", 9, "75"))
    assert goes_back(before, order_of(("b", 7, "70"), ("a", 10, "80"), ("b", 8, "10"), ("b", 9, "90")))


def test_changes_of_another_server_with_higher_positions_have_an_order() -> None:
    assert not goes_back(order_of(("a", 9, "50")), order_of(("b", 1, "51"), ("b", 2, "52")))


def test_changes_that_are_sent_again_do_not_go_back() -> None:
    for at in range(len(CIRCULAR)):
        again = [*CIRCULAR, *CIRCULAR[at:], ("a", 4, "6")]
        assert not order_of(*again).back
        for cut in range(1, len(again)):
            assert not goes_back(order_of(*again[:cut]), order_of(*again[cut:])), (at, cut)


def test_the_parts_of_a_window_are_compared_in_the_order_of_their_channel() -> None:
    parts = [order_of(("a", at, f"{at:02}"), start=at) for at in range(1, 9)]
    Random(7).shuffle(parts)
    assert not goes_back(order_of(("a", 0, "00")), *parts)
    late = order_of(("b", 1, "30"), start=4)
    assert goes_back(order_of(), late, order_of(("a", 9, "50"), start=2))
    assert not goes_back(order_of(("a", 9, "50")), order_of(("b", 1, "30"), channel="p/1")), "each partition is alone"


def test_what_was_found_once_is_not_found_again() -> None:
    found = order_of(("a", 9, "50"), ("b", 1, "30"))
    (order,) = join_orders([from_plain(ServerOrder, to_plain(found))], [])
    assert order.back == {}


def test_a_table_that_stopped_starts_again_without_the_servers_of_before() -> None:
    manifest = Manifest("log", 8, 1, {}, {}, "", "a", "", {"d.t": TableSlice("")})
    before, later = order_of(("a", 9, "50")), order_of(("b", 1, "30"))
    stopped = with_orders(manifest, known_orders(with_orders(manifest, [], [before], [])), [later], [])
    assert [(hole.table, hole.kind) for hole in stopped.holes] == [("d.t", EXPIRED)]
    assert known_orders(stopped) == ()
    assert with_orders(manifest, known_orders(stopped), [later], []).holes == ()


def test_a_connector_that_started_again_may_have_left_out_changes_of_all_its_tables() -> None:
    manifest = Manifest("log", 8, 1, {}, {}, "", "a", "", {name: TableSlice("") for name in ("d.t", "d.u", "d.v")})
    before = [order_of(("p", 1, "10")), replace(order_of(("p", 1, "10")), table="d.u")]
    again = OrderOfMessages("p/0", "d.t", 5)
    again.add_start("p", "tx 9")
    found = with_orders(manifest, before, [again.order], [])
    assert [(hole.table, hole.kind) for hole in found.holes] == [(name, EXPIRED) for name in ("d.t", "d.u", "d.v")]
    other = replace(order_of(("q", 1, "10")), table="d.v", channel="q/0")
    found = with_orders(manifest, [*before, other], [again.order], [])
    assert [hole.table for hole in found.holes] == ["d.t", "d.u"], "the third is of another connector"
    assert with_orders(manifest, known_orders(found), [again.order], []).holes == ()
    assert from_plain(ServerOrder, to_plain(again.order)) == again.order


def test_a_table_of_two_databases_is_not_copied_as_one() -> None:
    manifest = Manifest("log", 8, 1, {}, {"eu/0": "7", "us/0": "7"}, "", "a", "", {"d.t": TableSlice("")})
    eu, us = (replace(order_of(("a", 1, "1"), channel=f"{name}/0"), origins=(name,)) for name in ("eu", "us"))
    for known, seen in (([], [eu, us]), ([eu], [us]), ([replace(eu, origins=("eu", "us"))], [])):
        (hole,) = with_orders(manifest, known, seen, ["eu/0", "us/0"]).holes
        assert (hole.table, hole.kind) == ("d.t", EXPIRED)
        assert "connector eu; connector us" in hole.detail
    assert with_orders(manifest, [eu], [replace(us, table="d.u")], ["eu/0", "us/0"]).holes == ()
    assert with_orders(manifest, [eu], [us], ["us/0"]).holes == (), "the topic of the one is not read any more"

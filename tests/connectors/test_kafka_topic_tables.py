"""Which tables a topic may contain, beyond those of its first messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from airflow_cdc_provider.connectors.transports.kafka.topic_tables import TopicTables

ORDERS, ITEMS, USERS = "shop.orders", "shop.items", "shop.users"


def topics_of(table: str, first: dict[str, Iterable[str]], **settings: Any) -> set[str]:
    known = frozenset({table}.union(*first.values()))
    return TopicTables({topic: frozenset(seen) for topic, seen in first.items()}, known, **settings).topics_of([table])


@pytest.mark.parametrize("topic", ["srv.shop.orders", "srv_shop_orders", "orders"])
def test_a_topic_that_is_named_after_a_table_contains_no_other_one(topic: str) -> None:
    assert topics_of(ITEMS, {topic: {ORDERS}}) == set()
    assert topics_of(ORDERS, {topic: {ORDERS}, "srv.all": {ITEMS}}) == {topic}
    assert topics_of(ORDERS, {topic: (), "srv.all": {ITEMS}}) == {topic}, "one without messages, too"


@pytest.mark.parametrize("topic", ["srv.all", "srv.shop.orders_all", "srv.shop.orders", "myshop.old_orders"])
def test_any_other_topic_may_contain_every_table_without_a_topic_of_its_name(topic: str) -> None:
    """The last two have rows of another table than that of their name."""
    first: dict[str, Iterable[str]] = {topic: {"shop.orders_1"}, "srv.shop.items": {ITEMS}, "srv": ()}
    assert topics_of(USERS, first) == {topic}
    assert topics_of("shop.orders_1", {**first, "second": {USERS}}) == {topic, "second"}, (
        "in each, whatever comes first"
    )
    assert topics_of(ITEMS, first) == {"srv.shop.items"}
    assert topics_of(ORDERS, {**first, "second": {USERS}}) == {topic, "second"}, "it may be named after this one"


def test_topics_of_the_same_name_in_two_schemas_contain_one_table_each() -> None:
    first: dict[str, Iterable[str]] = {"srv.a.t": {"a.t"}, "srv.b.t": {"b.t"}, "t": {"a.t"}}
    assert topics_of("a.t", first) == {"srv.a.t", "t"}
    assert topics_of("b.t", first) == {"srv.b.t", "t"}


def test_heartbeats_ends_of_transactions_and_statements_are_no_rows() -> None:
    others = {"__debezium-heartbeat.srv", "srv.transaction", "of another writer"}
    first: dict[str, Iterable[str]] = {**dict.fromkeys(others, ()), "srv": (), "srv.shop.items": {ITEMS}}
    assert topics_of(USERS, first, others=others) == set()
    found = topics_of(USERS, {**first, "all": ()}, others=others)
    assert found == {"all"}, "a topic without messages, or whose first ones are statements"


def test_a_format_that_takes_the_table_from_the_topic_has_one_table_per_topic() -> None:
    first: dict[str, Iterable[str]] = {"db/t/feed": {"db/t"}, "db/u/feed": ()}
    assert topics_of("db/t", first, one_each=True) == {"db/t/feed"}
    assert topics_of("db/u", first, one_each=True) == {"db/u/feed"}

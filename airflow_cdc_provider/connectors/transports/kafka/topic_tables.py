"""Which tables a topic may contain. Pure.

The first messages of a topic show only some of its tables, and other ones when older messages are removed. So the name
decides: a topic that is named after a table, as Debezium names it, contains no other one. Any other topic may contain
every table that has no topic of its own name: connectors with `ByLogicalTableRouter` or `RegexRouter` write several
tables into one topic.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from airflow_cdc_provider.core.table.source_names import parts_of, without_quotes

SEPARATORS = re.compile(r"[^0-9A-Za-z]+")
"""A topic's name has other characters than a table's, and another delimiter if the connector has one."""


@dataclass(frozen=True)
class TopicTables:
    """``first``: every topic → the tables in its first messages. ``tables``: those that are known, under all names.
    ``others``: topics whose first messages are neither rows nor statements, such as heartbeats, ends of transactions,
    or messages of another writer. ``one_each``: the format takes the table from the topic."""

    first: Mapping[str, frozenset[str]]
    tables: frozenset[str]
    others: Collection[str] = ()
    one_each: bool = False

    def topics_of(self, names: Collection[str]) -> set[str]:
        """All topics that may contain the table, which has had these ``names``."""
        own = self.own_topics_of(names)
        return own if any(not named.isdisjoint(names) for named in self._named.values()) else own | self._shared

    def own_topics_of(self, names: Collection[str]) -> set[str]:
        """Those that have its name, or rows of it among their first messages."""
        wanted = frozenset(names)
        return {topic for topic, first in self.first.items() if wanted & (first | self._named[topic])}

    @cached_property
    def _named(self) -> dict[str, frozenset[str]]:
        """Topic → the tables that it is named after; none if it has rows of another one."""
        if self.one_each:
            return dict(self.first)
        return {topic: self._only_named(topic, first) for topic, first in self.first.items()}

    def _only_named(self, topic: str, first: frozenset[str]) -> frozenset[str]:
        named = frozenset[str]() if topic in self._without_rows else _named_after(topic, self.tables)
        return named if first <= named else frozenset()

    @cached_property
    def _shared(self) -> set[str]:
        return {topic for topic, named in self._named.items() if not named} - self._without_rows

    @cached_property
    def _without_rows(self) -> set[str]:
        return {topic for topic, first in self.first.items() if not first and self._has_no_rows(topic)}

    def _has_no_rows(self, topic: str) -> bool:
        """The topic of a connector's schema changes is the prefix of its others."""
        return topic in self.others or any(other.startswith(f"{topic}.") for other in self.first)


def _named_after(topic: str, tables: Collection[str]) -> frozenset[str]:
    """`srv.shop.orders`, or `orders`, if no table has the whole name."""
    text = _normalized(topic)
    whole = {table: len(name) for table in tables if text.endswith(name := _normalized(without_quotes(table)))}
    if whole:
        return frozenset(table for table, length in whole.items() if length == max(whole.values()))
    last = topic.rpartition(".")[2]
    return frozenset(table for table in tables if parts_of(table)[-1] == last)


def _normalized(name: str) -> str:
    """Also before the first part, so that a name is not found at the end of a longer one."""
    return "." + SEPARATORS.sub(".", name).strip(".")

"""Whether the positions of a table's changes are those of one server. Pure.

A position in the binlog of MySQL or MariaDB is that of one server. When a connector follows a failover, the changes of
the new server can have lower positions than those before: they would count as older ones. Two facts distinguish them
from changes that a restarted connector sends again. The number in a GTID is higher than any before, or the server is
new; without GTIDs, the position is higher than any of this server. Numbers of PostgreSQL, which has no GTIDs, are the
times of commits.

A connector that starts without offsets, at the end of the log or at a slot that was created anew, does not send the
changes between. Its first transaction has no position, and is either a new one, or was sent before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, order=True)
class Transaction:
    """``number``: in the order of its server. ``at``: its position, as digits."""

    number: int
    at: str


Ends = Mapping[str, Transaction]
"""Server → one of its transactions."""


@dataclass(frozen=True)
class ServerOrder:
    """What the messages of a table in one channel show. ``start``: the offset of the first one. ``top``: the highest
    position. ``first``, ``last``: the transaction of each server with the lowest and the highest number. ``back``: the
    last one of each server that follows a higher position; if the server is known, only those that are new count.
    ``starts``: the transactions without a position. ``restarts``: the new ones of them after others with a position,
    each with its server. ``origins``: the connectors with their databases."""

    channel: str
    table: str
    start: int = 0
    top: str = ""
    first: Ends = field(default_factory=dict)
    last: Ends = field(default_factory=dict)
    back: Ends = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    restarts: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[str, ...] = ()

    def then(self, later: ServerOrder) -> ServerOrder:
        """Of this and of a later part of the channel."""
        ends = [*later.first.items(), *later.last.items()]
        behind = [(server, found) for server, found in ends if found.at < self.top]
        back = {server: found for server, found in [*later.back.items(), *behind] if self._is_new(server, found)}
        last = {server: max(found, self.last.get(server, found)) for server, found in later.last.items()}
        begun = {**later.restarts, **(later.starts if self.top else {})}
        restarts = {start: server for start, server in begun.items() if start not in self.starts}
        return replace(
            self,
            top=max(self.top, later.top),
            last={**self.last, **last},
            back={**self.back, **back},
            starts={**self.starts, **later.starts},
            restarts={**self.restarts, **restarts},
            origins=tuple(sorted({*self.origins, *later.origins})),
        )

    def _is_new(self, server: str, found: Transaction) -> bool:
        known = self.last.get(server)
        return known is None or found.number > known.number


class OrderOfMessages:
    """Takes the messages of a table in one channel, as they arrive."""

    def __init__(self, channel: str, table: str, start: int) -> None:
        self.channel, self.table, self.start = channel, table, start
        self._first: dict[str, Transaction] = {}
        self._last: dict[str, Transaction] = {}
        self._back: dict[str, Transaction] = {}
        self._top = ""
        self._starts: dict[str, str] = {}
        self._restarts: dict[str, str] = {}
        self.origins: set[str] = set()

    def add_start(self, server: str, start: str) -> None:
        if self._top and start not in self._starts:
            self._restarts[start] = server
        self._starts[start] = server

    def add(self, server: str, number: int, at: str) -> None:
        known = self._last.get(server)
        if known is None or number > known.number:
            self._last[server] = Transaction(number, at)
            if at < self._top:
                self._back[server] = self._last[server]
        first = self._first.get(server)
        if first is None or number < first.number:
            self._first[server] = Transaction(number, at)
        self._top = max(self._top, at)

    @property
    def order(self) -> ServerOrder:
        order = ServerOrder(self.channel, self.table, self.start, self._top, self._first, self._last, self._back)
        origins = tuple(sorted(self.origins))
        return replace(order, starts=self._starts, restarts=self._restarts, origins=origins)


def join_orders(known: Iterable[ServerOrder], seen: Iterable[ServerOrder]) -> Iterator[ServerOrder]:
    """One per channel and table. ``known``: those of the windows before; ``seen``: those of this window."""
    joined = {(order.channel, order.table): replace(order, first={}, back={}, restarts={}) for order in known}
    for order in sorted(seen, key=lambda one: (one.channel, one.start)):
        before = joined.get((order.channel, order.table))
        joined[order.channel, order.table] = before.then(order) if before else order
    yield from joined.values()


def origin_of(source: Mapping[str, Any]) -> str:
    """The connector and the database in a source block. A connector that is renamed starts without its offsets."""
    return f"{source.get('name')}, database {source.get('db')}"


def origins_text(origins: Collection[str]) -> str:
    return "; ".join(f"connector {origin}" for origin in sorted(origins))


ONE_ORIGIN = (
    "name the topics or the folder of one of them under `source`, and copy the tables of the other by a replicator of "
    "its own"
)

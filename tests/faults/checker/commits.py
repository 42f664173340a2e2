"""One visible state of a target table, for any target, and the WAL positions in its record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.faults.checker.ledger import Row, Shape

ORDER = "_cdc_order"
DELETED = "_cdc_deleted"
SHARD = "shard"
"""The column of a shared table with the name of the source table."""


@dataclass(frozen=True)
class Commit:
    """``number`` counts the table's states upwards. ``record``: its control record, None where another writer
    committed; ``foreign``: which was another copy in the same table. ``orders``: the order key of each key's row;
    ``flagged``: keys of rows marked as deleted; ``twice``: keys of several rows."""

    number: int
    record: dict[str, Any] | None
    rows: Counter[Row]
    orders: dict[Row, str]
    flagged: frozenset[Row] = frozenset()
    twice: tuple[Row, ...] = ()
    foreign: bool = False

    @property
    def token(self) -> int:
        assert self.record is not None
        return int(self.record["fence"]) << 32 | int(self.record["window"])

    @property
    def state(self) -> str:
        return str(self.record["state"]["name"]) if self.record else ""


def commit(number: int, record: dict[str, Any] | None, shape: Shape, found: list[dict[str, Any]]) -> Commit:
    """``found``: rows as a reader returns them, columns by name. Of a shared table those of this copy count."""
    foreign = record is not None and record["table"] != shape.copy
    live: Counter[Row] = Counter()
    keys: Counter[Row] = Counter()
    orders: dict[Row, str] = {}
    flagged = set()
    for one in found:
        if shape.shared and one[SHARD] != shape.table:
            continue
        row = tuple(_plain(one[name]) for name in shape.columns)
        key = shape.key_of(row)
        if shape.key:
            keys[key] += 1
            orders[key] = str(one[ORDER])
        if shape.soft and one[DELETED]:
            flagged.add(key)
        else:
            live[row] += 1
    twice = tuple(key for key, count in keys.items() if count > 1)
    return Commit(number, None if foreign else record, live, orders, frozenset(flagged), twice, foreign)


def wal(lsn: str) -> int:
    high, _, low = lsn.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def anchor(floor: str) -> int:
    """The WAL position of a copy: after the eight digits of the epoch."""
    return int(floor[8:24], 16)


def _plain(value: Any) -> object:
    return str(value.quantize(Decimal("0.01"))) if isinstance(value, Decimal) else value

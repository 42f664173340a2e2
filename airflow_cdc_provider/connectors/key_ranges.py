"""Splits of a copy by ranges of the leading key column, which any process can read. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Condition

ROWS_AT_ONCE = 10_000
SPLITS_PER_CORE = 4
"""Enough that a slow split does not leave the other cores idle, few enough for files of a useful size."""

LARGE_SPLIT_ROWS = 1_000_000
"""Splits of a large table. A copy that was interrupted reads at most this much of it again, per reader."""


@dataclass(frozen=True)
class KeyRange:
    """Rows that match ``where`` and whose leading key value is in ``[low, high)``; None is unbounded. ``table``: the
    name of the table in the source; empty if that is the name of its copy."""

    low: int | None
    high: int | None
    where: tuple[Condition, ...]
    table: str = ""

    def text(self) -> str:
        return json.dumps(to_plain(self))


def range_of(split: str) -> KeyRange:
    return from_plain(KeyRange, json.loads(split))


def key_ranges(
    rows: int, least: object, most: object, cores: int, where: Sequence[Condition], table: str = ""
) -> tuple[str, ...]:
    """``least``, ``most``: the minimum and maximum of the leading key column."""
    parts = max(min(SPLITS_PER_CORE * cores, rows // ROWS_AT_ONCE), rows // LARGE_SPLIT_ROWS)
    return tuple(KeyRange(low, high, tuple(where), table).text() for low, high in ranges(least, most, parts))


def ranges(least: object, most: object, parts: int) -> list[tuple[int | None, int | None]]:
    """Unbounded at both ends. A single range if the values are not integers."""
    if parts < 2 or not isinstance(least, int) or not isinstance(most, int) or most - least < parts:
        return [(None, None)]
    edges = [least + (most - least) * part // parts for part in range(1, parts)]
    return list(zip([None, *edges], [*edges, None], strict=True))

"""What every change of a batch made of its row: the row after it, or the end of the row. Pure; works on Arrow tables.

``entries`` have the columns of ``TIMED_ENTRIES``; the result has those of ``VERSIONS``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.carry_over import Truncate
from airflow_cdc_provider.core.log.change_records import DEPARTS, Operation
from airflow_cdc_provider.core.table.merge_plan import GONE, LIVE
from spark_jobs.folds.json_members import image_of, members
from spark_jobs.folds.key_groups import ENTRIES, TEXT, KeyGroups
from spark_jobs.folds.key_holders import without_passing_rows
from spark_jobs.folds.lives import Entry, Life, Row, Rules, lives_of, row_of

TIMED_ENTRIES = ENTRIES.append(pa.field("commit_ts", pa.timestamp("us", tz="UTC")))
VERSIONS = pa.schema(
    [
        *(("key", TEXT), ("op", TEXT), ("order_key", TEXT), ("at", pa.int64()), ("image", TEXT)),
        *(("known", pa.list_(TEXT)), ("root", TEXT), ("root_may_be_missing", pa.bool_())),
    ]
)
"""As ``lives.Row``, one per change. ``op``: LIVE, or GONE where the row ends. ``at``: the commit time in microseconds
since 1970; NULL if it is unknown. ``root`` is set wherever values are not known."""


class Version(NamedTuple):
    row: Row
    at: int | None


@dataclass(frozen=True)
class OfSegment:
    """The lives of a key between two truncates, of which ``passed`` precede them."""

    passed: int
    lives: Sequence[Life]


@dataclass(frozen=True)
class VersionFold:
    """``truncates``: those of the batch and those that its records have waited through, in their order.
    ``doubly_held``: two rows may have held a key within a
    transaction."""

    rules: Rules
    truncates: tuple[Truncate, ...] = ()
    doubly_held: bool = False

    def rows(self, entries: pa.Table) -> pa.Table:
        """Raises FoldError. A chain of moves must be contained whole."""
        if self.rules.ignore_deletes:
            deletes = pc.equal(entries["op"], Operation.DELETE.value)
            entries = entries.filter(pc.or_(pc.invert(deletes), pc.is_valid(entries["phase"])))
        groups = KeyGroups(entries)
        if self.doubly_held:
            groups = KeyGroups(without_passing_rows(groups))
        of_keys = [self._segments(of_key) for of_key in groups.entries_of(np.ones(len(groups.last), bool))]
        lives = [life for segments in of_keys for segment in segments for life in segment.lives]
        departed = {life.last.link_id: life for life in lives if life.last.phase == DEPARTS}
        times = _times(groups.entries)
        return _table([version for segments in of_keys for version in self._versions(segments, times, departed)])

    def _segments(self, entries: Sequence[Entry]) -> Sequence[OfSegment]:
        orders = [truncate.order_key for truncate in self.truncates]
        segments = groupby(entries, lambda entry: bisect_left(orders, entry.order_key))
        return [
            OfSegment(passed, list(lives_of(list(some), replace(self.rules, truncated=passed > 0))))
            for passed, some in segments
        ]

    def _versions(
        self,
        segments: Sequence[OfSegment],
        times: Mapping[tuple[str, str], int | None],
        departed: Mapping[str | None, Life],
    ) -> Iterator[Version]:
        key = segments[0].lives[0].first.key
        for truncate in self.truncates:
            yield Version(_end(key, truncate.order_key), truncate.at)
        for life in (life for segment in segments for life in segment.lives):
            for number, entry in enumerate(life.entries):
                at = times[key, entry.order_key]
                if not entry.deletes:
                    yield Version(self._row(life, number, departed), at)
                elif not self.rules.ignore_deletes:
                    yield Version(_end(key, entry.order_key), at)

    def _row(self, life: Life, number: int, departed: Mapping[str | None, Life]) -> Row:
        """After the entry of this number."""
        entry = life.entries[number]
        if entry.whole:
            initials = self.rules.initials.get(entry.schema_id)
            image = image_of({**initials, **dict(members(entry.after or "{}"))}) if initials else entry.after or "{}"
            return Row(entry.key, LIVE, entry.order_key, image, None)
        row = row_of(Life(life.entries[: number + 1], life.begins, life.rules), departed, life.rules)
        if row.known is None or row.root is not None:
            return row
        return row._replace(root=row.key, root_may_be_missing=life.put)


def _end(key: str, order_key: str) -> Row:
    return Row(key, GONE, order_key, "{}", [])


def _times(entries: pa.Table) -> Mapping[tuple[str, str], int | None]:
    columns = (entries["k"], entries["order_key"], entries["commit_ts"].cast(pa.int64()))
    keys, orders, times = (column.to_pylist() for column in columns)
    return dict(zip(zip(keys, orders, strict=True), times, strict=True))


def _table(versions: Sequence[Version]) -> pa.Table:
    rows = [
        (row.key, GONE if row.op == GONE else LIVE, row.order_key, at, row.image, row.known, row.root, may_be_missing)
        for row, at, may_be_missing in ((one.row, one.at, one.row.root_may_be_missing) for one in versions)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(VERSIONS)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, VERSIONS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=VERSIONS)

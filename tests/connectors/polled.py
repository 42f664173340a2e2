"""A table that is written to while it is polled, and a plain copy of it, without a database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.connectors.source import Boundary, HoleFound, SourceStatus, StreamItem, StreamSplit
from airflow_cdc_provider.connectors.sources.polling.intervals import (
    IntervalPlanner,
    poll_status,
    split_bounds,
    split_intervals,
)
from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.polling.pages import Page, Query, Row, read_pages
from airflow_cdc_provider.connectors.sources.polling.positions import (
    PollPosition,
    floor_key,
    microseconds,
    parse_position,
    position_of,
)
from airflow_cdc_provider.connectors.sources.polling.reading import first_query, read_items
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import TableState

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (Column("k", LogicalType(Kind.TEXT), False), Column("v", LogicalType(Kind.INT64)))
SCHEMA = TableSchema("s.t", COLUMNS, ("k",))
TASK = TableTask("s.t", "t", SCHEMA, TableRule("s.t"), "0" * 64, TableState.REPLICATING)


@dataclass(frozen=True)
class Write:
    """Committed ``at`` seconds, with a timestamp ``late`` seconds earlier, or without one if that is None."""

    at: int
    key: str
    late: int | None
    value: int
    gone: bool = False


@dataclass
class Polled:
    """``now_s`` is the source's clock, in seconds."""

    options: PollingOptions
    writes: Sequence[Write]
    now_s: int = 0
    page_s: int = 0
    held: dict[str, int] = field(default_factory=dict)
    floor: str = ""
    queries: int = 0
    position: Position = field(default_factory=dict)
    behind: list[ChangeRecord] = field(default_factory=list)
    task: TableTask = TASK

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.now_s)

    @property
    def planner(self) -> IntervalPlanner:
        return IntervalPlanner(self.now, self.options)

    def rows(self) -> dict[str, Write]:
        """The committed rows."""
        rows: dict[str, Write] = {}
        for write in self.writes:
            if write.at <= self.now_s:
                rows[write.key] = write
        return {key: write for key, write in rows.items() if not write.gone}

    def ask(self, query: Query) -> list[Row]:
        self.queries += 1
        self.now_s += self.page_s
        found = []
        for write in self.rows().values():
            stamp = None if write.late is None else START + timedelta(seconds=write.at - write.late)
            key = json.dumps([write.key])
            if query.null_timestamps != (stamp is None):
                continue
            if stamp is None:
                inside = query.after is None or key > query.after.key
            elif query.after and query.after.timestamp:
                inside = (stamp, key) > (query.after.timestamp, query.after.key) and stamp <= query.upto
            else:
                inside = query.since <= stamp <= query.upto
            if inside:
                found.append(Row(stamp, key, json.dumps({"k": write.key, "v": write.value})))
        return sorted(found, key=lambda row: (row.timestamp or START, row.key))[: query.rows]

    def open(self) -> None:
        self.position = position_of({"s.t": self.planner.start("s.t")})

    def copy(self, sealed: Position) -> None:
        position = parse_position(sealed["s.t"])
        self.floor = floor_key(1, max(position.round, microseconds(self.now)))
        self.held = {key: write.value for key, write in self.rows().items()}

    def status(self) -> SourceStatus:
        def asks(table: str, lo: PollPosition, limit: PollPosition) -> bool:
            return any(page.rows for page in self.pages(lo, limit))

        return poll_status(self.position, ["s.t"], self.planner, asks)

    def pages(self, lo: PollPosition, limit: PollPosition) -> Iterator[Page]:
        yield from read_pages(self.ask, first_query(lo, limit, self.options, SCHEMA.key), include_null_timestamps=True)

    def window(self, limit: Position, boundaries: int) -> list[StreamItem]:
        """One window that ends after at most so many boundaries. Its records wait for ``apply``."""
        taken: list[StreamItem] = []
        for split in split_intervals(self.position, limit):
            for item in self.items(split):
                taken.append(item)
                if isinstance(item, Boundary):
                    boundaries -= 1
                    self.position = {**self.position, **item.position}
                    if not boundaries:
                        break
        self.behind += [item for item in taken if isinstance(item, ChangeRecord)]
        return taken

    def items(self, split: StreamSplit) -> Iterator[StreamItem]:
        assert split_bounds(split)[0] == "s.t"
        return read_items(split, self.task, 1, self.pages)

    def apply(self) -> None:
        """Applies each record above the floor of the copy, in the order of their keys."""
        for record in sorted(self.behind, key=lambda record: record.order_key):
            if record.order_key > self.floor:
                (key,) = json.loads(record.key_before or "")
                self.held.pop(key, None)
                if record.after is not None:
                    self.held[key] = json.loads(record.after)["v"]
        self.behind.clear()

    def catch_up(self, boundaries: int = 10**9) -> None:
        """Windows until there are no more changes at one time of the clock."""
        for _ in range(10_000):
            status = self.status()
            if not status.has_changes:
                return
            before = self.position
            self.window(status.limit, boundaries)
            self.apply()
            if "after" not in json.loads(self.position["s.t"]) and "after" not in json.loads(before["s.t"]):
                return
        raise AssertionError("there is no end of it")


def records(taken: Sequence[StreamItem]) -> list[ChangeRecord]:
    return [item for item in taken if isinstance(item, ChangeRecord)]


def holes(taken: Sequence[StreamItem]) -> list[HoleFound]:
    return [item for item in taken if isinstance(item, HoleFound)]

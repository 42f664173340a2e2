"""A folder of Datastream's files into which a table is backfilled again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_cdc_provider.connectors.source import SnapshotFound
from airflow_cdc_provider.connectors.transports.files.positions import START, position_of
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.log.snapshots import SourceSnapshot, merge_snapshots
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.states import TableState
from spark_jobs.windows.restarts import shorten_at_restarts
from tests.connectors.formats.datastream_messages import AT_MS, T, event, line, mysql
from tests.connectors.test_files_source import Feed

HOUR_MS = 3_600_000
TASK = TableTask(T.table, "t", T, TableRule(T.table), "", TableState.PENDING)


def backfilled(value: str, started_ms: int, read_ms: int = 0) -> dict[str, Any]:
    read = mysql("INSERT", False, log_file="", log_position=0)
    row = {"id": 1, "v": value}
    return event(
        read,
        "mysql-backfill-fulldump",
        source_timestamp=started_ms,
        read_timestamp=read_ms or started_ms,
        payload=row,
    )


def changed(value: str, at_ms: int) -> dict[str, Any]:
    return event(mysql("UPDATE-INSERT", False), source_timestamp=at_ms, payload={"id": 1, "v": value})


class Windows:
    """Windows of a folder, each with one more file."""

    def __init__(self, folder: Path) -> None:
        self.feed = Feed(folder, format="datastream")
        self.known: tuple[SourceSnapshot, ...] = ()
        self.end = position_of(START)
        self.number = 0

    def holes(self, *events: dict[str, Any]) -> list[Hole]:
        self.number += 1
        self.feed.write(f"{self.number}.jsonl", "\n".join((line(one).value or b"").decode() for one in events))
        items, self.end = self.feed.window(self.end, [TASK])
        seen = [item.snapshot for item in items if isinstance(item, SnapshotFound)]
        _, restarts = shorten_at_restarts(self.feed.source, {}, {}, self.known, seen, (), {}, [T.table])
        manifest = Manifest("log", self.number, 1, {}, {}, "", "a", "", {T.table: TableSlice("")})
        manifest = replace(manifest, snapshots=merge_snapshots([*self.known, *seen]))
        for restart in restarts:
            manifest = restart.mark(manifest)
        self.known = manifest.snapshots
        return list(manifest.holes)


def test_the_first_backfill_overlaps_with_changes_over_several_windows(tmp_path: Path) -> None:
    windows = Windows(tmp_path)
    assert windows.holes(changed("0", AT_MS - HOUR_MS)) == []
    assert windows.holes(changed("1", AT_MS + HOUR_MS), backfilled("0", AT_MS, AT_MS + 2 * HOUR_MS)) == []
    assert windows.holes(backfilled("0", AT_MS, AT_MS + 9 * HOUR_MS), changed("2", AT_MS + 8 * HOUR_MS)) == []
    assert windows.holes(backfilled("0", AT_MS, AT_MS + HOUR_MS)) == [], "a late file"


def test_a_later_backfill_is_a_hole_of_its_table(tmp_path: Path) -> None:
    """Its rows may have changes that the stream lost: they are older than every change in the order of the copy."""
    windows = Windows(tmp_path)
    assert windows.holes(backfilled("0", AT_MS), changed("1", AT_MS + HOUR_MS)) == []
    (hole,) = windows.holes(backfilled("2", AT_MS + 3 * HOUR_MS))
    assert (hole.table, hole.kind) == (T.table, EXPIRED)
    assert "Datastream backfilled the table again" in hole.detail and "Start a new stream" in hole.detail
    assert windows.holes(backfilled("2", AT_MS + 3 * HOUR_MS)) == [], "it is known"


def test_two_backfills_in_one_window_or_in_the_wrong_order_are_a_hole(tmp_path: Path) -> None:
    both = Windows(tmp_path / "both")
    assert len(both.holes(backfilled("2", AT_MS + 3 * HOUR_MS), backfilled("0", AT_MS))) == 1
    late = Windows(tmp_path / "late")
    assert late.holes(backfilled("2", AT_MS + 3 * HOUR_MS)) == []
    assert len(late.holes(backfilled("0", AT_MS))) == 1

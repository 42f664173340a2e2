"""Where the source, the change log and the copies are in the stream, as runs have last seen it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.log.retained_log import SourceRetention
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.state_rows import TableRow


@dataclass(frozen=True)
class StreamPositions:
    """``end``: how far a window could reach when a run asked the source, at ``end_at``. ``read``: the end of the last
    sealed ``window``. ``confirmed``: what was acknowledged to the source, at ``confirmed_at``. Positions are empty, and
    times too, until a run has seen them. ``retention``: of the source's log. Times are UTC in ISO 8601 format."""

    end: dict[str, str] = field(default_factory=dict)
    end_at: str = ""
    window: int = 0
    read: dict[str, str] = field(default_factory=dict)
    confirmed: dict[str, str] = field(default_factory=dict)
    confirmed_at: str = ""
    retention: SourceRetention = field(default_factory=SourceRetention)


def plain_positions(stream: StreamPositions, rows: Iterable[TableRow]) -> dict[str, Any]:
    """As JSON, for the command line and the API. ``windows``: the ends of the windows of the cursors, each once, since
    a position can have many channels."""
    controls = {row.table: row.control for row in rows if row.control}
    windows = {(one.epoch, one.window): one.hi for one in controls.values()}
    return {
        "source": {name: value for name, value in to_plain(stream).items() if name != "retention"},
        "cursors": {table: _cursor(control) for table, control in controls.items()},
        "windows": [
            {"epoch": epoch, "window": window, "position": dict(position)}
            for (epoch, window), position in sorted(windows.items())
        ],
    }


def plain_cursor(control: ControlRecord | None) -> dict[str, Any] | None:
    """The cursor of one table with its position; None without a copy."""
    return {**_cursor(control), "position": dict(control.hi)} if control else None


def _cursor(control: ControlRecord) -> dict[str, Any]:
    return {"window": control.window, "floor": control.floor, "epoch": control.epoch}

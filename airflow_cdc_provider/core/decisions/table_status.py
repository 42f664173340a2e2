"""What status shows of a table, as plain JSON: the command line and the API print the same. Pure."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.decisions.freshness import freshness, lagging_since
from airflow_cdc_provider.core.log.copy_progress import CopyProgress
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.attainment import meets
from airflow_cdc_provider.core.table.costs import total
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.recent_changes import series
from airflow_cdc_provider.core.table.state_rows import TableRow

LEFT_OUT = ("control", "attainment", "recent", "costs", "history")


def table_status(row: TableRow, definition: Definition, progress: CopyProgress | None, now: str) -> dict[str, Any]:
    """The fields of the row, of its freshness, and of a running copy, without the control record and the history of
    states. ``lagging_since``: the lag counts from then. ``cost``: of the last 30 days. ``changes_24h``: by half
    hour, the current one last. ``comparison``: the last one with the source, in words. ``now``: UTC in ISO 8601
    format."""
    plain: dict[str, Any] = to_plain(row)
    for name in LEFT_OUT:
        del plain[name]
    carry = row.carry
    freshness_fields: dict[str, Any] = to_plain(freshness(row, definition.freshness, now))
    freshness_fields["lagging_since"] = lagging_since(row)
    waiting = {"quarantined": row.quarantined, "dirty": carry.dirty, "parked": carry.parked}
    copying = {**to_plain(progress), "seconds_left": progress.seconds_left} if progress else None
    fraction = row.attainment.fraction()
    attained = {"attainment": fraction, "meets_objective": meets(fraction, definition.objective)}
    measured = {"cost": to_plain(total(row.costs.values())), "changes_24h": series(row.recent, now)}
    compared = row.verified.shown if row.verified else ""
    at_present = {"catching_up": is_catching_up(row), "copying": copying, "comparison": compared}
    return plain | freshness_fields | attained | waiting | measured | at_present

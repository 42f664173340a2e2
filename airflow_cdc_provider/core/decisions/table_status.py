"""What status shows of a table, as plain JSON: the command line and the API print the same. Pure."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.decisions.freshness import Freshness
from airflow_cdc_provider.core.log.copy_progress import CopyProgress
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.attainment import meets
from airflow_cdc_provider.core.table.costs import total
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.state_rows import TableRow

LEFT_OUT = ("control", "attainment", "recent", "costs", "history")


def table_status(row: TableRow, fresh: Freshness, progress: CopyProgress | None, objective: str) -> dict[str, Any]:
    """The fields of the row, of its freshness, and of a running copy, without the control record and the history of
    states. ``cost``: of the last 30 days. ``objective``: of the definition."""
    plain: dict[str, Any] = to_plain(row)
    for name in LEFT_OUT:
        del plain[name]
    carry = row.carry
    freshness_fields: dict[str, Any] = to_plain(fresh)
    waiting = {"quarantined": carry.quarantined, "dirty": carry.dirty, "parked": carry.parked}
    copying = {**to_plain(progress), "seconds_left": progress.seconds_left} if progress else None
    fraction = row.attainment.fraction()
    attained = {"attainment": fraction, "meets_objective": meets(fraction, objective)}
    cost: dict[str, Any] = {"cost": to_plain(total(row.costs.values()))}
    now = {"catching_up": is_catching_up(row), "copying": copying}
    return plain | freshness_fields | attained | waiting | cost | now

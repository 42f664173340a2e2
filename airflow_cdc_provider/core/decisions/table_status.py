"""What status shows of a table, as plain JSON: the command line and the API print the same. Pure."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.decisions.freshness import Freshness
from airflow_cdc_provider.core.log.copy_progress import CopyProgress
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.attainment import meets
from airflow_cdc_provider.core.table.published_cut import is_catching_up
from airflow_cdc_provider.core.table.state_rows import TableRow


def table_status(row: TableRow, fresh: Freshness, progress: CopyProgress | None, objective: str) -> dict[str, Any]:
    """The fields of the row without its control record, of its freshness, and of a running copy. ``objective``: of the
    definition."""
    plain: dict[str, Any] = to_plain(row)
    del plain["control"], plain["attainment"]
    carry = row.carry
    freshness_fields: dict[str, Any] = to_plain(fresh)
    waiting = {"quarantined": carry.quarantined, "dirty": carry.dirty, "parked": carry.parked}
    copying = {**to_plain(progress), "seconds_left": progress.seconds_left} if progress else None
    fraction = row.attainment.fraction()
    attained = {"attainment": fraction, "meets_objective": meets(fraction, objective)}
    return plain | freshness_fields | attained | waiting | {"catching_up": is_catching_up(row), "copying": copying}

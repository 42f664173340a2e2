"""The copies that an idle run takes from the index instead of their target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from airflow_cdc_provider.control.each_target import ask_each_target
from airflow_cdc_provider.core.errors import UNREADABLE
from airflow_cdc_provider.core.spec.selection import Selection
from airflow_cdc_provider.core.table.state_rows import Claim, TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.registry import Targets

SETTLED_FOR = timedelta(hours=1)


def settled_tables(rows: Mapping[str, TableRow], claims: Iterable[Claim], sealed: int, at: str) -> set[str]:
    """Copies that were read recently, are replicating, and have nothing left to apply or to fetch. ``at``: now, by the
    state store's clock, as ``seen_at`` is. Its clock may have been set back since."""
    claimed = {claim.table for claim in claims}
    since = (datetime.fromisoformat(at) - SETTLED_FOR).isoformat(timespec="milliseconds")
    return {
        table
        for table, row in rows.items()
        if row.state is TableState.REPLICATING
        and row.control is not None
        and not row.control.carry.dirty
        and row.passed >= sealed
        and since < row.seen_at <= at
        and table not in claimed
    }


def present_tables(targets: Targets, selections: Sequence[Selection], copies: Collection[str]) -> set[str]:
    """Those of ``copies`` whose tables exist. Each target is asked once; of a target that does not answer, no table
    counts as present."""

    def present(target: str, own: list[Selection]) -> set[str]:
        try:
            found = targets.named(target).existing([selection.target for selection in own])
        except UNREADABLE:
            return set()
        return {selection.table for selection in own if selection.target in found}

    asked = (selection for selection in selections if selection.table in copies)
    return set().union(*ask_each_target(asked, attrgetter("table"), present))

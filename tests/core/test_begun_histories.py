"""When a resync of a feed applies the whole history again, and does not continue it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.core.log.change_log import EXPIRED, RELOAD, RESTART, Hole
from airflow_cdc_provider.core.table.applied_order import AppliedOrder
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.states import State, TableState
from spark_jobs.resync import begins_anew

STATE = State(TableState.REPLICATING, "2026-01-01T00:00:00Z")


class Feed:
    def contains_all_after(self, start: Any, end: Any, table: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("kind", "since", "anew"),
    [
        (EXPIRED, 1, True),
        (RESTART, 1, False),
        (RESTART, 3, True),
        (RELOAD, 1, True),
    ],
)
def test_a_history_begins_anew_where_the_feed_has_it_from_its_first_row_on(kind: str, since: int, anew: bool) -> None:
    """After an interrupted first snapshot, too: the connector has sent no change before it began again."""
    holes = (Hole(kind, "public.t", ""),)
    log = SimpleNamespace(manifest=lambda window: SimpleNamespace(holes=holes))
    job: Any = SimpleNamespace(source=Feed(), log=log, step=SimpleNamespace(window=3))
    task: Any = SimpleNamespace(source_table="public.t")
    control = ControlRecord("r", "public.t", "l", "o", "a", 1, 5, "f", STATE, applied=AppliedOrder(since))
    assert begins_anew(job, task, control) is anew

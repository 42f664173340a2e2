"""Since when the windows contain all changes of each table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

from airflow_cdc_provider.connectors.source_features import RepeatsChanges
from airflow_cdc_provider.core.decisions.steps import Step
from spark_jobs.windows.recent_windows import RecentWindow


def followed_since(windows: Sequence[RecentWindow], step: Step, source: RepeatsChanges) -> dict[str, datetime]:
    """Table → the source's time where the first of the windows begins that all contain the table, up to ``step.window``
    and in its epoch. ``windows``: the last one first. Omits tables that were in one that is not recent: no change from
    before that window can be repeated any more."""
    began = source.time_of(step.lo)
    since = {task.table: began for task in step.tables}
    still = set(since)
    for window in takewhile(lambda one: one.epoch == step.epoch, windows):
        still &= window.tables
        if not still:
            break
        if not window.is_recent:
            return {table: at for table, at in since.items() if table not in still}
        began = source.time_of(window.lo)
        since |= dict.fromkeys(still, began)
    return since

"""Since when the windows contain all changes of each table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from airflow_cdc_provider.connectors.source_features import RepeatsChanges
from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.staging.change_log import ChangeLog


def followed_since(
    log: ChangeLog, step: Step, source: RepeatsChanges, within: timedelta, now: datetime
) -> dict[str, datetime]:
    """Table → the source's time where the first of the windows begins that all contain the table, up to ``step.window``
    and in its epoch. Omits tables that were in a window sealed earlier than ``within``: no change from before that
    window can be repeated any more."""
    began = source.time_of(step.lo)
    since = {task.table: began for task in step.tables}
    still = set(since)
    for manifest in _earlier(log, step):
        still &= manifest.tables.keys()
        if not still:
            break
        if datetime.fromisoformat(manifest.sealed_at) < now - within:
            return {table: at for table, at in since.items() if table not in still}
        began = source.time_of(manifest.lo)
        since |= dict.fromkeys(still, began)
    return since


def _earlier(log: ChangeLog, step: Step) -> Iterable[Manifest]:
    """The windows of the epoch before ``step.window``, the last one first."""
    for number in range(step.window - 1, max(log.oldest(), 1) - 1, -1):
        manifest = log.manifest(number)
        if manifest.epoch != step.epoch:
            return
        yield manifest

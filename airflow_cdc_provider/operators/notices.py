"""Keeps the alerts of a replicator and sends its notices. A notice is removed after each receiver has it: what fails or
dies here is sent again by the next run or the monitor."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_cdc_provider.core.decisions.alert_texts import fill, placeholders
from airflow_cdc_provider.core.decisions.alerts import Alert, Waiting, alerts_of, grouped, receiver
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.notifications import Notification
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.times import parse_utc, utc_now
from airflow_cdc_provider.hooks.notifiers import make_notifier
from airflow_cdc_provider.links.replicator import page_of
from airflow_cdc_provider.state.store import StateStore

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

LANE = "notices"
LEASE_S = 300.0
KEPT = timedelta(days=7)
"""How long a notice that cannot be delivered is tried."""


def alerts_of_tables(definition: Definition, rows: Iterable[TableRow], now: str) -> list[Alert]:
    """Without those of copies in a target that the definition does not list any more."""
    targets = definition.target_names
    listed = [row for row in rows if target_of_copy(row.table) in targets]
    return alerts_of(listed, definition.freshness, now)


def notify(
    state: StateStore,
    definition: Definition,
    context: Context,
    alerts: Sequence[Alert],
    of_run: Sequence[Alert] | None,
) -> None:
    """Send the receivers of ``notify`` what they have not got. ``alerts``: of tables; ``of_run``: those that are not of
    a table, None if they are unknown. Does nothing without receivers, and while another process does it."""
    holder = uuid.uuid4().hex
    if not definition.notify or not state.acquire(definition.name, LANE, holder, LEASE_S):
        return
    try:
        state.alerts.change(definition.name, [*alerts, *(of_run or ())], whole_replicator=of_run is not None)
        _send(state, definition, context)
    finally:
        state.release(definition.name, LANE, holder)


def _send(state: StateStore, definition: Definition, context: Context) -> None:
    waiting, now = state.alerts.waiting(definition.name), parse_utc(utc_now())
    kept = set[int]()
    for entry in definition.notify:
        for one in _send_to(entry, waiting, state, definition, context):
            if now - parse_utc(one.created_at) < KEPT:
                kept.add(one.number)
            else:
                log.error("given up after %d days, through %s: %s", KEPT.days, entry.via, one.notice.alert)
    state.alerts.remove([one.number for one in waiting if one.number not in kept])


def _send_to(
    entry: Notification, waiting: Sequence[Waiting], state: StateStore, definition: Definition, context: Context
) -> list[Waiting]:
    """Returns the notices that the receiver does not have."""
    name, link = definition.name, page_of(definition.name)
    groups = grouped(one for one in waiting if one.is_for(entry))
    for number, group in enumerate(groups):
        values = placeholders(name, [one.notice.alert for one in group], link)
        try:
            make_notifier(entry.via, fill(entry.arguments, values)).notify(context)
        except Exception as error:
            log.error("%s", _undelivered(entry, values["title"], error))
            return [one for rest in groups[number:] for one in rest]
        state.alerts.delivered(group, receiver(entry))
        log.info("sent through %s: %s", entry.via, values["title"])
    return []


def _undelivered(entry: Notification, title: str, error: Exception) -> Problem:
    return Problem(
        "NTF002",
        "a notification could not be sent",
        where=f"notify, via {entry.via}",
        found=f"{type(error).__name__}: {error}"[:300],
        do="airflow cdc check; the next run, or the monitor, sends it again",
        data=title,
    )

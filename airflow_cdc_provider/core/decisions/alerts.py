"""Alerts: one opens when a problem of a table begins, and closes when it is over. Pure.

Operators are notified of an alert once, however many runs it lasts, and once of the recovery of a table that has no
alert any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from airflow_cdc_provider.core.decisions.freshness import freshness
from airflow_cdc_provider.core.decisions.summaries import ReplicatorSummary
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import format_duration
from airflow_cdc_provider.core.spec.notifications import Notification, NotifyOn
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState

WHOLE_REPLICATOR = ""
"""In place of a table: the trouble is not that of a table."""


@dataclass(frozen=True)
class Alert:
    """``id`` distinguishes the alerts of a table. ``since``: UTC in ISO 8601 format."""

    table: str
    id: str
    kind: NotifyOn
    since: str
    reason: str
    remedy: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.table, self.id


@dataclass(frozen=True)
class Notice:
    """A notification of an alert, or of a recovery. ``ended``: kinds of the alerts whose end a recovery is."""

    alert: Alert
    ended: tuple[NotifyOn, ...] = ()

    def concerns(self, on: Collection[NotifyOn]) -> bool:
        """Whether a receiver of these events gets it: a recovery, if it got one of the alerts that ended."""
        return self.alert.kind in on and (not self.ended or bool(set(self.ended) & set(on)))


@dataclass(frozen=True)
class Waiting:
    """A notice that is to be sent. ``delivered``: the receivers that have it."""

    number: int
    notice: Notice
    created_at: str
    delivered: tuple[str, ...] = ()

    def is_for(self, entry: Notification) -> bool:
        return receiver(entry) not in self.delivered and self.notice.concerns(entry.on)


def receiver(entry: Notification) -> str:
    """The id of an entry of ``notify``. An entry with other arguments is another receiver."""
    return hashlib.sha256(json.dumps(to_plain(entry), sort_keys=True).encode()).hexdigest()[:16]


def alerts_of(rows: Iterable[TableRow], allowed: timedelta, now: str) -> list[Alert]:
    """By the rows of the state store. ``allowed``: the ``freshness`` of the definition."""
    return [alert for row in rows for alert in _of_row(row, allowed, now)]


def needs_attention(summary: ReplicatorSummary, allowed: timedelta, now: str) -> bool:
    """Whether a table of the replicator may have an alert."""
    troubled = summary.states.get(TableState.BLOCKED, 0) + summary.states.get(TableState.FAILING, 0)
    return bool(troubled or summary.questions or summary.quarantined) or summary.is_late(allowed, now)


def alert_of_run(problem: Problem, now: str) -> Alert:
    """A run did nothing for any table, or could not continue."""
    reason = f"{problem.what} ({problem.found})" if problem.found else problem.what
    id_ = f"{NotifyOn.FAILING} {problem.code}"
    return Alert(WHOLE_REPLICATOR, id_, NotifyOn.FAILING, now, reason, problem.do)


def _of_row(row: TableRow, allowed: timedelta, now: str) -> Iterator[Alert]:
    if question := row.open_question:
        kind = NotifyOn.QUESTION
        reason, remedy = "; ".join(question.changes), f"answer: {', '.join(question.answers)}"
        yield Alert(row.table, f"{kind} {question.id}", kind, row.since, reason, remedy)
    elif row.state is TableState.BLOCKED:
        id_ = f"{NotifyOn.BLOCKED} {_block_of(row)}"
        yield Alert(row.table, id_, NotifyOn.BLOCKED, row.since, row.reason, row.remedy)
    if row.state is TableState.FAILING:
        reason = row.reason or row.error
        id_ = f"{NotifyOn.FAILING} {_code_of(row)}"
        yield Alert(row.table, id_, NotifyOn.FAILING, row.failing_since, reason, row.remedy)
    if row.carry.quarantined:
        kind, reason = NotifyOn.QUARANTINE, "bad records wait in quarantine"
        yield Alert(row.table, kind.value, kind, row.seen_at, reason, "replay or discard them")
    fresh = freshness(row, allowed, now)
    if fresh.late:
        copy = "has no copy yet" if fresh.lag_s is None else f"contains the source's state up to {row.fresh_at}"
        reason = f"older than freshness allows ({format_duration(allowed)}): it {copy}"
        yield Alert(row.table, NotifyOn.LATE.value, NotifyOn.LATE, now, reason)


def _block_of(row: TableRow) -> str:
    """When the table was blocked: a table that was resumed and is blocked again is news. The problem's code if each run
    finds it anew."""
    state = row.control.state if row.control else None
    return state.since if state and state.name is TableState.BLOCKED else _code_of(row)


def _code_of(row: TableRow) -> str:
    """Of the problem that is its error."""
    return row.error.partition(" ")[0][:20]


def still_known(known: Sequence[Alert], current: Sequence[Alert]) -> list[Alert]:
    """The alerts that are no news if they come back: all of a kind that the table still has."""
    lasting = {(alert.table, alert.kind) for alert in current}
    return [alert for alert in known if (alert.table, alert.kind) in lasting]


def notices(known: Sequence[Alert], current: Sequence[Alert], now: str) -> list[Notice]:
    """What is to be sent after the alerts were ``known`` and are now ``current``. Both are of the same tables."""
    before = {alert.key for alert in known}
    opened = [Notice(alert) for alert in current if alert.key not in before]
    troubled = {alert.table for alert in current}
    over = dict.fromkeys(alert.table for alert in known if alert.table not in troubled)
    return opened + [_recovery([alert for alert in known if alert.table == table], now) for table in over]


def _recovery(ended: Sequence[Alert], now: str) -> Notice:
    kinds = tuple(dict.fromkeys(alert.kind for alert in ended))
    reason = f"was {', '.join(kinds)} since {min(alert.since for alert in ended)}"
    alert = Alert(ended[0].table, NotifyOn.RECOVERED.value, NotifyOn.RECOVERED, now, reason)
    return Notice(alert, kinds)


def grouped(found: Iterable[Waiting]) -> list[list[Waiting]]:
    """One message for each cause: 200 tables that fail for one reason are one message. In the order of the first of
    each."""
    groups: dict[tuple[NotifyOn, str, str], list[Waiting]] = {}
    for one in found:
        alert = one.notice.alert
        cause = "" if alert.kind is NotifyOn.RECOVERED else alert.reason
        groups.setdefault((alert.kind, cause, alert.remedy), []).append(one)
    return list(groups.values())

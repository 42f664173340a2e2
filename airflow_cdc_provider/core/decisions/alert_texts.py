"""The texts of notifications. Pure."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from airflow_cdc_provider.core.decisions.alerts import WHOLE_REPLICATOR, Alert
from airflow_cdc_provider.core.printable import printable
from airflow_cdc_provider.core.spec.notifications import NotifyOn
from airflow_cdc_provider.core.spec.placeholders import PLACEHOLDER

TABLES_SHOWN = 10

PHRASES = {
    NotifyOn.BLOCKED: "blocked",
    NotifyOn.FAILING: "failing",
    NotifyOn.LATE: "late",
    NotifyOn.QUESTION: "waiting for an answer",
    NotifyOn.QUARANTINE: "holding bad records",
    NotifyOn.RECOVERED: "in order again",
}


def placeholders(replicator: str, alerts: Sequence[Alert], link: str) -> dict[str, str]:
    """The values of the placeholders. ``alerts``: of one kind and one reason, or recoveries."""
    first = alerts[0]
    tables = _tables([printable(alert.table) for alert in alerts])
    verb = "are" if len(alerts) > 1 else "is"
    title = f"{replicator}: {tables or 'the replicator'} {verb} {PHRASES[first.kind]}"
    reasons = dict.fromkeys(alert.reason for alert in alerts)
    reason = printable(next(iter(reasons))) if len(reasons) == 1 else ""
    remedy = printable(first.remedy)
    lines = [title, reason, f"do: {remedy}" if remedy else "", link]
    return {
        "replicator": replicator,
        "kind": first.kind.value,
        "tables": tables,
        "since": min(alert.since for alert in alerts),
        "reason": reason,
        "remedy": remedy,
        "link": link,
        "title": title,
        "text": "\n".join(filter(None, lines)),
    }


def fill(arguments: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The arguments of the notifier. In arguments with `html` in their names, values are escaped."""
    escaped = {name: html.escape(text).replace("\n", "<br>\n") for name, text in values.items()}
    return {name: _filled(text, escaped if "html" in name else values) for name, text in arguments.items()}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _tables(tables: Sequence[str]) -> str:
    names = [table for table in tables if table != WHOLE_REPLICATOR]
    rest = len(names) - TABLES_SHOWN
    shown = ", ".join(names[:TABLES_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown

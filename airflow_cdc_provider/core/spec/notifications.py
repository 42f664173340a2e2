"""Notifications of operators, as the YAML has them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.spec.fields import doc


class NotifyOn(StrEnum):
    BLOCKED = "blocked"
    FAILING = "failing"
    LATE = "late"
    QUESTION = "question"
    QUARANTINE = "quarantine"
    RECOVERED = "recovered"


PLACEHOLDERS = ("replicator", "kind", "tables", "since", "reason", "remedy", "link", "title", "text")


@dataclass(frozen=True, kw_only=True)
class Notification:
    on: tuple[NotifyOn, ...] = doc(
        "Events that are notified, each once: a table is `blocked`, `failing` or `late`, waits for the answer to a "
        "`question`, has records in `quarantine`, or has `recovered` from all of that; by default all.",
        tuple(NotifyOn),
        non_empty=True,
    )
    via: str = doc("Import path of an Airflow notifier.", form="notifier")
    arguments: dict[str, str] = doc(
        f"Arguments of the notifier, texts with placeholders: {', '.join(f'`{{{name}}}`' for name in PLACEHOLDERS)}. "
        "`{text}` is the whole message.",
        form="message",
    )

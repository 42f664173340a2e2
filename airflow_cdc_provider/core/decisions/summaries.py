"""What a list of replicators shows of each: counts over its tables, without their rows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from airflow_cdc_provider.core.decisions.freshness import aging_since, lagging_since
from airflow_cdc_provider.core.table.recent_changes import summed
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import WITHOUT_COPY
from airflow_cdc_provider.core.times import parse_utc


@dataclass(frozen=True)
class ReplicatorSummary:
    """``states``: number of tables by state. ``rows``: as last counted. ``changes``: applied since the last copy of
    each table. ``questions``: tables that wait for an answer. ``recent``: changes by half hour. ``fresh_at``: every
    copy contains the source's state up to this time of the source's clock; empty while there is no copy.
    ``lagging_since``: the longest lag counts from then. ``aging_since``: from this time on, the table that is oldest
    ages; see ``freshness``. ``seen_at``: when a run last looked. Times are UTC in ISO 8601
    format."""

    states: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    changes: int = 0
    quarantined: int = 0
    questions: int = 0
    recent: dict[str, int] = field(default_factory=dict)
    fresh_at: str = ""
    lagging_since: str = ""
    aging_since: str = ""
    seen_at: str = ""

    @property
    def tables(self) -> int:
        return sum(self.states.values())

    def lag_s(self, now: str) -> float | None:
        """The longest lag of a table; None if there is no copy yet."""
        if not self.lagging_since:
            return None
        return max(0.0, (parse_utc(now) - parse_utc(self.lagging_since)).total_seconds())

    def is_late(self, allowed: timedelta, now: str) -> bool:
        """Whether at least one table is late. ``allowed``: the ``freshness`` of the definition."""
        return bool(self.aging_since) and parse_utc(now) - parse_utc(self.aging_since) > allowed


def summarize(rows: Collection[TableRow]) -> ReplicatorSummary:
    copied = [row for row in rows if row.state not in WITHOUT_COPY]
    return ReplicatorSummary(
        states={state.value: count for state, count in sorted(Counter(row.state for row in rows).items())},
        rows=sum(row.rows or 0 for row in copied),
        changes=sum(sum(row.changes.values()) for row in copied),
        quarantined=sum(row.quarantined for row in copied),
        questions=sum(row.open_question is not None for row in rows),
        recent=summed(row.recent for row in copied),
        fresh_at=min((row.fresh_at for row in copied if row.fresh_at), default=""),
        lagging_since=min((since for row in copied if (since := lagging_since(row))), default=""),
        aging_since=min((since for row in copied if (since := aging_since(row))), default=""),
        seen_at=max((row.seen_at for row in rows), default=""),
    )

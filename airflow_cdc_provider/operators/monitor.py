"""The operator that watches all replicators from outside their runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator

from airflow_cdc_provider.core.decisions.alerts import Alert, needs_attention
from airflow_cdc_provider.core.metrics import LAG, LATE, RETENTION_LEFT, gauges
from airflow_cdc_provider.core.printable import printable
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.notifications import NotifyOn
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.operators.failures import as_airflow_failures
from airflow_cdc_provider.operators.metrics import send
from airflow_cdc_provider.operators.notices import alerts_of_tables, notify
from airflow_cdc_provider.state.store import StateStore

if TYPE_CHECKING:
    from airflow.sdk import Context

AT_ONCE = 200
"""Replicators whose entries are read together."""


class MonitorOperator(BaseOperator):
    """Notify operators of copies that have become late, for any reason: a paused DAG, a run that hangs, a triggerer
    that ended. Reads the state store alone, and no system of a replicator. Sends the metrics of late tables, and of
    logs of their sources that run out.

    Returns the late tables of each replicator that has some.
    """

    ui_color = "#dfe9f3"

    def execute(self, context: Context) -> dict[str, list[str]]:
        late: dict[str, list[str]] = {}
        with as_airflow_failures():
            state = open_state()
            names, alerted = state.replicators.names(), state.alerts.replicators()
            for start in range(0, len(names), AT_ONCE):
                late |= self._late_tables(state, names[start : start + AT_ONCE], alerted, context)
        self.log.info("%d replicators, %d with late tables", len(names), len(late))
        return late

    def _late_tables(
        self, state: StateStore, names: list[str], alerted: Collection[str], context: Context
    ) -> dict[str, list[str]]:
        """Rows are read only of replicators that have a problem, or had one when they were last seen."""
        late, summaries, now = {}, state.summaries(names), state.now()
        for entry in state.replicators.of(names):
            definition, name = entry.definition, entry.definition.name
            has_problem = needs_attention(summaries[name], definition.freshness, now)
            if not entry.gone and (has_problem or name in alerted):
                rows = state.tables(name).values()
                alerts = alerts_of_tables(definition, rows, now)
                notify(state, definition, context, alerts, None)
                self._send_metrics(state, definition, rows, now)
                if tables := self._named(name, alerts):
                    late[name] = tables
        return late

    def _named(self, name: str, alerts: list[Alert]) -> list[str]:
        found = [alert for alert in alerts if alert.kind is NotifyOn.LATE]
        for alert in found:
            self.log.warning("%s: %s is late: %s", name, printable(alert.table), printable(alert.reason))
        return [alert.table for alert in found]

    def _send_metrics(self, state: StateStore, definition: Definition, rows: Iterable[TableRow], now: str) -> None:
        retention = state.positions.get(definition.name).retention
        samples = gauges(definition, rows, retention, now)
        send(sample for sample in samples if sample.metric in (LAG, LATE, RETENTION_LEFT))

"""Notifications of operators, the time in which copies are late, and lineage."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ALERTS, NOTICES = "tests/core/test_alerts.py", "tests/provider/test_notices.py"
ATTAINMENT, LINEAGE = "tests/core/test_attainment.py", "tests/core/test_lineage.py"
EVENTS = "tests/provider/test_asset_events.py"
OF_ALERTS, OF_SENDING = (
    "airflow_cdc_provider/core/decisions/alerts.py",
    "airflow_cdc_provider/operators/notices.py",
)
OF_ATTAINMENT = "airflow_cdc_provider/core/table/attainment.py"

MONITORING_MUTANTS = (
    Mutant(
        "tables are fresh although the window ended before the limit",
        "airflow_cdc_provider/control/closing_rows.py",
        " or (part and part.cut)",
        "",
        ("tests/provider/test_window_runs.py",),
    ),
    Mutant(
        "tables are fresh although the source was not read",
        "airflow_cdc_provider/control/closing_rows.py",
        "return self.decision.unread or (bool(reading) and not self.results.has_ended(reading))",
        "return self.decision.unread",
        ("tests/provider/test_window_runs.py",),
    ),
    Mutant(
        "an alert is notified in each run",
        OF_ALERTS,
        "for alert in current if alert.key not in before]",
        "for alert in current]",
        (ALERTS,),
    ),
    Mutant(
        "a recovery is notified while another alert of the table is open",
        OF_ALERTS,
        "for alert in known if alert.table not in troubled)",
        "for alert in known)",
        (ALERTS,),
    ),
    Mutant(
        "a notice is removed although a notifier failed",
        OF_SENDING,
        "            return [one for rest in groups[number:] for one in rest]\n",
        "            return []\n",
        (NOTICES,),
    ),
    Mutant(
        "a notice is sent again to a receiver that has it",
        OF_SENDING,
        "        state.alerts.delivered(group, receiver(entry))\n",
        "",
        (NOTICES,),
    ),
    Mutant(
        "the monitor closes the alert of a run",
        "airflow_cdc_provider/state/alerts.py",
        "if whole_replicator or alert.table != WHOLE_REPLICATOR]",
        "if True]",
        (NOTICES,),
    ),
    Mutant(
        "the reason of a message is HTML",
        "airflow_cdc_provider/core/decisions/alert_texts.py",
        "html.escape(text)",
        "text",
        (ALERTS,),
    ),
    Mutant(
        "a copy is late before freshness allows",
        OF_ATTAINMENT,
        "parse_utc(aging_since) + allowed)",
        "parse_utc(aging_since))",
        (ATTAINMENT,),
    ),
    Mutant(
        "late time before the last measurement counts twice",
        OF_ATTAINMENT,
        "max(parse_utc(self.at), parse_utc(aging_since) + allowed)",
        "parse_utc(aging_since) + allowed",
        (ATTAINMENT,),
    ),
    Mutant(
        "a silent writer leaves its copies fresh",
        "airflow_cdc_provider/control/closing_rows.py",
        "min(seen, source.silent_since() or seen)",
        "seen",
        ("tests/provider/test_cli_status.py",),
    ),
    Mutant(
        "the worker's clock says up to when a copy is equal to its source",
        "airflow_cdc_provider/control/closing_rows.py",
        "parse_utc(self.decision.source_at or self.decision.at)",
        "parse_utc(self.decision.at)",
        ("tests/provider/test_cli_status.py",),
    ),
    Mutant(
        "the time of a commit is compared with the worker's clock",
        "airflow_cdc_provider/control/closing_rows.py",
        "with_fresh_at(row, fresh_at, self._clock_ahead_s, self.at)",
        "with_fresh_at(row, fresh_at, 0.0, self.at)",
        ("tests/provider/test_cli_status.py",),
    ),
    Mutant(
        "a source whose clock was set back seems fresh until its clock has caught up",
        "airflow_cdc_provider/core/decisions/freshness.py",
        "known <= found <= end or end < known",
        "row.fresh_at <= fresh_at",
        ("tests/core/test_freshness.py",),
    ),
    Mutant(
        "the phases of a table have no table",
        "airflow_cdc_provider/control/results.py",
        "yield task, result.table, result.phases",
        'yield task, "", result.phases',
        ("tests/provider/test_metrics.py",),
    ),
    Mutant(
        "a retry of several tables is counted for the first",
        "airflow_cdc_provider/control/run_metrics.py",
        'return tables[0] if len(tables) == 1 else ""',
        "return tables[0]",
        ("tests/provider/test_metrics.py",),
    ),
    Mutant(
        "lineage of a renamed column names the copy's",
        "airflow_cdc_provider/core/lineage/copies.py",
        "            column.source_name,\n",
        "            column.name,\n",
        (LINEAGE,),
    ),
    Mutant(
        "a run that fails sends no asset event",
        "airflow_cdc_provider/operators/window.py",
        'context["ti"].xcom_push(CHANGED_TABLES, events)',
        "pass",
        (EVENTS,),
    ),
    Mutant(
        "what was committed by a run that never ended is not sent",
        "airflow_cdc_provider/control/table_rows.py",
        "(before is not None and (data_changed or before.control is None)),",
        "(before is not None and before.control is None),",
        (EVENTS,),
    ),
    Mutant(
        "what an earlier attempt has committed is not sent",
        "airflow_cdc_provider/control/results.py",
        "(result.found or Operation",
        "(Operation",
        (EVENTS,),
    ),
    Mutant(
        "another problem of the same kind is not notified",
        OF_ALERTS,
        'id_ = f"{NotifyOn.FAILING} {_code_of(row)}"',
        "id_ = str(NotifyOn.FAILING)",
        (NOTICES,),
    ),
    Mutant(
        "a problem that comes back is notified again",
        OF_ALERTS,
        "return [alert for alert in known if (alert.table, alert.kind) in lasting]",
        "return [alert for alert in known if alert in current]",
        (NOTICES,),
    ),
    Mutant(
        "a table that is blocked again after a resume is no news",
        OF_ALERTS,
        "return state.since if state and state.name is TableState.BLOCKED else _code_of(row)",
        "return _code_of(row)",
        (NOTICES,),
    ),
    Mutant(
        "the records that stop a table are not counted",
        "airflow_cdc_provider/control/closing_rows.py",
        "bad_records=sum(case.blocks_table for case in cases)",
        "bad_records=0",
        ("tests/provider/test_quarantine.py",),
    ),
    Mutant(
        "commits of a Delta table go before the versions that staging keeps",
        "airflow_cdc_provider/targets/delta/maintenance.py",
        "if statistics.log_retention < keep:",
        "if False:",
        ("tests/core/test_upkeep.py",),
    ),
)

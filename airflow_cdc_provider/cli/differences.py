"""``differences``: lists what the last comparison of each table found."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import find_definition, open_with_connections
from airflow_cdc_provider.control.reports import last_reports
from airflow_cdc_provider.core.serde import to_plain

COLUMNS = ("table", "at", "window", "key", "column", "hash at source", "hash in target")


@cli_command
def differences(args: argparse.Namespace) -> CommandOutput:
    replicator = open_with_connections(find_definition(args.name))
    reports = list(last_reports(replicator, args.table))
    rows = [
        (
            report.table,
            report.at,
            report.window,
            line.key,
            line.column or "",
            line.source_hash or "no row",
            line.target_hash or "no row",
        )
        for report in reports
        for line in report.lines
    ]
    lines = [] if rows else [f"no comparison of {replicator.name} has found a difference"]
    return CommandOutput({"reports": to_plain(reports)}, OutputTable(COLUMNS, rows), lines)

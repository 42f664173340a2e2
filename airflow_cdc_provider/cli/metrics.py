"""``metrics``: shows the gauges of replicators as of now. Runs send them, and counters, through Airflow."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable, pairs_text
from airflow_cdc_provider.cli.replicators import find_definitions
from airflow_cdc_provider.control.run_metrics import current_gauges
from airflow_cdc_provider.core.metrics import plain_samples
from airflow_cdc_provider.hooks.state import open_state

COLUMNS = ("metric", "value", "unit", "tags")


@cli_command
def metrics(args: argparse.Namespace) -> CommandOutput:
    state = open_state()
    now = state.now()
    samples = [
        sample for definition in find_definitions(args.name) for sample in current_gauges(state, definition, now)
    ]
    rows = [(one.metric.name, f"{one.value:g}", one.metric.unit, pairs_text(one.tags)) for one in samples]
    return CommandOutput({"metrics": plain_samples(samples)}, OutputTable(COLUMNS, rows))

"""``audit``: shows who did what to a replicator, the newest entries first."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable, pairs_text
from airflow_cdc_provider.cli.replicators import find_definition
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.hooks.state import open_state

COLUMNS = ("at", "actor", "action", "detail")


@cli_command
def audit(args: argparse.Namespace) -> CommandOutput:
    """Entries outlive the replicator: the name of a deleted one is accepted."""
    state = open_state()
    entries = state.audit(args.name, args.limit)
    name = args.name
    if not entries:
        name = find_definition(args.name).name
        entries = state.audit(name, args.limit)
    rows = [(one.at, one.actor, one.action, pairs_text(one.detail)) for one in entries]
    lines = [] if rows else [f"the audit log has no entry of {name}"]
    return CommandOutput({"entries": to_plain(entries)}, OutputTable(COLUMNS, rows), lines)

"""``airflow cdc state rebuild [NAME]``: rebuilds the index from targets and staging alone."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definitions, open_with_connections
from airflow_cdc_provider.control.inventory import rebuild_index


@cli_command
def rebuild(args: argparse.Namespace) -> CommandOutput:
    replicators = [open_with_connections(definition) for definition in find_definitions(args.name)]
    rows = [(replicator.name, row) for replicator in replicators for row in rebuild_index(replicator, current_user())]
    tables = [
        {"replicator": name, "table": row.table, "state": row.state.value, "window": row.window, "fence": row.fence}
        for name, row in rows
    ]
    listing = OutputTable(
        ("replicator", "table", "state", "window"), [(name, row.table, row.state, row.window) for name, row in rows]
    )
    return CommandOutput({"tables": tables}, listing, [f"rebuilt {len(rows)} tables from targets and staging"])

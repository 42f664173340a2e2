"""``airflow cdc state rebuild [NAME]``: rebuilds the index from targets and staging alone."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.command_runner import cli_command
from airflow_cdc_provider.cli.output import CommandOutput, OutputTable
from airflow_cdc_provider.cli.replicators import current_user, find_definitions, open_with_connections
from airflow_cdc_provider.control.inventory import rebuild_index


@cli_command
def rebuild(args: argparse.Namespace) -> CommandOutput:
    replicators = [open_with_connections(definition) for definition in find_definitions(args.name)]
    rebuilt = {replicator.name: rebuild_index(replicator, current_user()) for replicator in replicators}
    rows = [(name, row) for name, index in rebuilt.items() for row in index.rows]
    unread = [problem for index in rebuilt.values() for problem in index.unread]
    tables = [
        {"replicator": name, "table": row.table, "state": row.state.value, "window": row.window, "fence": row.fence}
        for name, row in rows
    ]
    listing = OutputTable(
        ("replicator", "table", "state", "window"), [(name, row.table, row.state, row.window) for name, row in rows]
    )
    lines = [f"rebuilt {len(rows)} tables from targets and staging"]
    if unread:
        lines.append(f"not read: {len(unread)} tables; rebuild again when their targets answer")
    code = exit_codes.TEMPORARY if unread else exit_codes.OK
    return CommandOutput({"tables": tables}, listing, lines, unread, code)

"""``airflow cdc state rebuild [NAME]``: the index made anew from targets and staging alone."""

from __future__ import annotations

import argparse

from airflow_cdc_provider.cli.command_runner import command
from airflow_cdc_provider.cli.output import Answer, OutputTable
from airflow_cdc_provider.cli.replicators import definitions, find, opened, operator
from airflow_cdc_provider.control.inventory import rebuild_index as rebuild_index


@command
def rebuild(args: argparse.Namespace) -> Answer:
    chosen = [find(args.name)] if args.name else [loaded.definition for loaded in definitions().loaded.values()]
    rows = [(one.name, row) for one in chosen for row in rebuild_index(opened(one), operator())]
    tables = [
        {"replicator": name, "table": row.table, "state": row.state.value, "window": row.window, "fence": row.fence}
        for name, row in rows
    ]
    listing = OutputTable(
        ("replicator", "table", "state", "window"), [(n, r.table, r.state, r.window) for n, r in rows]
    )
    return Answer({"tables": tables}, listing, [f"{len(rows)} tables found in targets and staging"])

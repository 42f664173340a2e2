"""What exists for a replicator, as output of a command."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.control.footprint import Footprint, left_note
from airflow_cdc_provider.core.decisions.replicator_changes import OwnedTable
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.copies import DEFAULT_TARGET, target_of_copy

MIB = 1 << 20


def _target(copy: OwnedTable) -> str:
    name = target_of_copy(copy.table)
    return "the target" if name == DEFAULT_TARGET else f"target {name}"


def footprint_body(footprint: Footprint, drop_copies: bool) -> dict[str, Any]:
    return {
        "objects": [to_plain(one) for one in footprint.objects],
        "kept_bytes": footprint.retained_bytes,
        "copies": [
            {
                "table": copy.table,
                "target": copy.target,
                "rows": footprint.rows.get(copy.table),
                "dropped": drop_copies,
            }
            for copy in footprint.copies
        ],
        "left": list(footprint.left),
        "files": footprint.files,
        "bytes": footprint.bytes,
    }


def footprint_lines(footprint: Footprint, drop_copies: bool) -> list[str]:
    """What a deletion removes, and what stays."""
    lines = [f"at the source: {one.kind} {one.name}" for one in footprint.objects]
    if footprint.retained_bytes is not None:
        lines.append(f"at the source: {footprint.retained_bytes / MIB:,.1f} MiB of log")
    lines.append(f"in staging: {footprint.files:,} files, {footprint.bytes / MIB:,.1f} MiB")
    for copy in footprint.copies:
        rows = footprint.rows.get(copy.table)
        counted = "an unknown number of rows" if rows is None else f"{rows:,} rows"
        verb = "dropped" if drop_copies else "stays, without its control record"
        lines.append(f"in {_target(copy)}: {copy.target}, {counted}: {verb}")
    lines += map(left_note, footprint.left)
    return lines

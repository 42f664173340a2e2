"""What the change log has for a table after its cursor: records and holes. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.decisions.facts import LogFacts
from airflow_cdc_provider.core.log.change_log import SCHEMA, Hole, Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table


def first_pending_window(log: LogFacts, control: ControlRecord) -> int | None:
    """The first sealed window after the cursor with records of the table."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (part := manifest.tables.get(control.source_table)) and part.rows:
            return number
    return None


def first_hole(log: LogFacts, control: ControlRecord) -> Hole | None:
    """The first hole after the cursor. A window that did not capture the table is a hole, too."""
    for number in range(control.window + 1, log.sealed + 1):
        manifest = log.manifests.get(number)
        if manifest and (hole := hole_for(manifest, control)):
            return hole
    return None


def last_hole(manifests: Iterable[Manifest], control: ControlRecord) -> int | None:
    """The last of these windows with a hole, up to the cursor. Earlier windows must not be applied again."""
    windows = (manifest.window for manifest in manifests if hole_for(manifest, control))
    return max((window for window in windows if window <= control.window), default=None)


def waits_for_repair(manifest: Manifest, control: ControlRecord) -> bool:
    """Whether the window has a hole of the copy that no later copy has repaired."""
    return control.window < manifest.window and hole_for(manifest, control) is not None


def is_open(hole: Hole, window: int, copies: Iterable[ControlRecord]) -> bool:
    """Whether one of the copies that have the hole has neither passed it, which only a new copy can, nor a floor that
    repairs it. ``window``: of the hole."""
    return any(copy.window < window and _has(copy.table, copy.floor, hole) for copy in copies)


def _has(copy: str, floor: str, hole: Hole) -> bool:
    concerned = hole.table == source_table(copy) and (not hole.copies or copy in hole.copies)
    return concerned and hole.kind != SCHEMA and not "" < hole.order_key <= floor


def hole_for(manifest: Manifest, control: ControlRecord) -> Hole | None:
    """The hole that the copy has in a window."""
    return hole_of(manifest, control.table, control.floor, control.log_sha256)


def hole_of(manifest: Manifest, copy: str, floor: str, log_sha256: str = "") -> Hole | None:
    """The hole that a copy at ``floor`` has in a window. A hole at or below the floor is repaired by the copy. A hole
    of single rows (``ids``) is one of the whole table: rows that can be fetched are records of the window, not holes. A
    schema change amid a transaction is none: the schemas of the records decide. ``log_sha256``: of the copy; a window
    that was read by other settings does not have its records, whatever else is missing there."""
    table = source_table(copy)
    captured = manifest.tables.get(table)
    if captured and captured.log_sha256 and log_sha256 and captured.log_sha256 != log_sha256:
        found = f"window {manifest.window} has the records that other settings of the table in the YAML select"
        return Hole("other settings", table, "", detail=found)
    for hole in manifest.holes:
        if _has(copy, floor, hole):
            return hole
    if captured is None:
        return Hole("uncaptured", table, "", detail=f"window {manifest.window} did not capture the table")
    return None

"""The target window of a rewind, and the reasons to refuse it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.decisions.holes import hole_for
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.core.times import parse_utc


def target_window(to: str, manifests: Iterable[Manifest]) -> int:
    """``to``: a window number, or a time in ISO 8601 format (UTC without a zone) for the last window whose changes were
    all committed by then. Raises CommandRefused (CMD008) for other text."""
    if to.isdecimal():
        return int(to)
    try:
        moment = parse_utc(to)
    except ValueError:
        raise CommandRefused.of(
            "CMD008", "not a window and not a time", "--to", to, "a window number, or a time like 2026-05-01T12:00"
        ) from None
    manifests = sorted(manifests, key=lambda manifest: manifest.window)
    later = [m.window for m in manifests if parse_utc(m.commit_ts_max or m.sealed_at) > moment]
    return later[0] - 1 if later else manifests[-1].window if manifests else 0


def reached_window(now: ControlRecord, manifests: Iterable[Manifest]) -> int:
    """The last window whose changes the table has. Windows without records of it need no commit, so its cursor may be
    an earlier one."""
    reached = now.window
    for manifest in sorted(manifests, key=lambda manifest: manifest.window):
        if manifest.window <= now.window:
            continue
        if hole_for(manifest, now) or manifest.tables[now.source_table].rows:
            break
        reached = manifest.window
    return reached


def refusal(
    command: Command, now: ControlRecord, window: int, reached: int, past: ControlRecord | None, oldest: int
) -> Problem | None:
    """Why a table may not return to ``past``, the newest version with its cursor at or before ``window`` (None if the
    target has none). ``reached``: its ``reached_window``. ``oldest``: the oldest window in the change log, 0 if there
    is none."""
    resync = f"airflow cdc resync {command.replicator} --table {in_shell(now.table)}"
    if window > reached:
        return Problem(
            "CMD009",
            f"{now.table} has not reached this window yet",
            now.table,
            f"window {window}",
            f"up to {reached}",
            do=f"rewind to window {reached} or an earlier one",
            data="nothing was changed",
        )
    if past is None:
        what = f"the target has no version of {now.table} at or before window {window}"
        return Problem("CMD010", what, now.table, "no version that can be read", do=resync, data="nothing was changed")
    if oldest > past.window + 1:
        return Problem(
            "CMD011",
            f"the change log does not reach back to the version that {now.table} would return to",
            now.table,
            f"its cursor is window {past.window}, the oldest window {oldest}",
            do=resync,
            data="nothing was changed",
        )
    different = [
        what
        for what, same in (
            ("change log", past.log_id == now.log_id),
            ("source", past.source_identity == now.source_identity),
            ("definition", past.definition_sha256 == now.definition_sha256),
        )
        if not same
    ]
    if different:
        what = f"that version of {now.table} was written from another {' and '.join(different)}"
        found = f"the version at window {past.window}"
        do = f"{resync}, or rewind to a later window"
        return Problem("CMD012", what, now.table, found, do=do, data="nothing was changed")
    return None

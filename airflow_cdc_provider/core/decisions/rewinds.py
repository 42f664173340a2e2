"""Where a rewind goes, and when it may not. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from airflow_cdc_provider.core.decisions.commands import Command
from airflow_cdc_provider.core.errors import CommandRefused, Problem
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.core.table.control_record import ControlRecord


def target_window(to: str, manifests: Iterable[Manifest]) -> int:
    """``to``: the number of a window, or an ISO time (UTC where it names no zone), which means the last window whose
    changes were all committed by then. Raises CommandRefused (CMD008) for any other text."""
    if to.isdecimal():
        return int(to)
    try:
        moment = _moment(to)
    except ValueError:
        raise CommandRefused(
            Problem("CMD008", "no window and no time", "--to", to, "a window number, or a time like 2026-05-01T12:00")
        ) from None
    manifests = sorted(manifests, key=lambda manifest: manifest.window)
    over = [m.window for m in manifests if _moment(m.commit_ts_max or m.sealed_at) > moment]
    return over[0] - 1 if over else manifests[-1].window if manifests else 0


def refusal(
    command: Command, now: ControlRecord, window: int, past: ControlRecord | None, oldest: int
) -> Problem | None:
    """Why a table may not go back to ``past``, the newest state with its cursor at ``window`` or before (None where the
    target holds none). ``oldest``: the first window that the change log still holds, 0 where it holds none."""
    resync = f"airflow cdc resync {command.replicator} --table {now.table}"
    if window > now.window:
        return Problem(
            "CMD009", f"{now.table} is not that far yet", now.table, f"window {window}", f"up to {now.window}"
        )
    if past is None:
        what = f"the target holds no state of {now.table} at or before window {window}"
        return Problem("CMD010", what, now.table, "no version that can be read", do=resync, data="nothing was changed")
    if oldest > past.window + 1:
        return Problem(
            "CMD011",
            f"the change log does not reach back to the state {now.table} would go to",
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
        what = f"{now.table} was written from another {' and '.join(different)} then"
        found = f"the state at window {past.window}"
        return Problem("CMD012", what, now.table, found, do=f"{resync}, or rewind less far", data="nothing was changed")
    return None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

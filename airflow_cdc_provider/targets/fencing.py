"""Ownership of a target table: claiming fences, and the errors for attempts that lost."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.errors import Blocked, Fenced, TargetUnavailable
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.target import TargetState

TRIES = 50
"""Fences claimed by attempts that died before their commit are skipped. This many in a row have another cause."""


def claim_fence(log: ChangeLog, record: ControlRecord, expected: TargetState) -> ControlRecord:
    """The record with a fence above the target's token that no other attempt has claimed in the change log. Raises
    Fenced (TGT022) if other attempts claim fences as fast."""
    if expected.token is not None and record.token <= expected.token:  # a restore by others leaves the token high
        record = replace(record, fence=split_token(expected.token)[0] + 1)
    for _ in range(TRIES):
        if log.claim_fence(record):
            return record
        record = replace(record, fence=max(record.fence, log.highest_fence(record.table)) + 1)
    raise Fenced.of(
        "TGT022",
        f"{TRIES} fences in a row were already claimed by other attempts",
        where=record.table,
        found=f"fence {record.fence}",
        do="check whether a second Airflow writes to the same target",
    )


def table_changed(table: str, location: str, expected: TargetState) -> Fenced:
    fence, window = split_token(expected.token or 0)
    return Fenced.of(
        "TGT020",
        "the table has changed since it was read",
        where=f"{table} at {location}",
        found=f"no longer version {expected.version} with fence {fence}, window {window}",
        do="nothing: another writer owns the table now; the next run reads it again",
        data="this attempt changed nothing",
    )


def fence_not_committed(location: str) -> TargetUnavailable:
    return TargetUnavailable.of(
        "TGT021",
        "a fence commit failed twice and is not in the table",
        where=location,
        found="the table is unchanged",
        do="check the permissions and the free space of the target; the next run tries again",
        data="unchanged",
    )


def cannot_restore(location: str, to: str, found: str) -> Blocked:
    return Blocked.of(
        "TGT024",
        f"the table cannot be restored to {to}",
        where=location,
        found=found,
        do="rewind to a later version, or resync the table",
        data="the table is unchanged",
    )


def superseded(record: ControlRecord, found: str) -> Fenced:
    """The error of an attempt whose commit lost to another one. ``found``: what the target or the log has instead."""
    return Fenced.of(
        "TGT030",
        "a newer writer owns the table",
        where=record.table,
        found=found,
        allowed=f"the first commit with fence {record.fence}, window {record.window}",
        do="nothing: the next run reads the table again and continues from its state",
        data="the table has the other commit; nothing of this attempt was applied",
    )


def superseded_by(state: TargetState, record: ControlRecord) -> Fenced:
    if state.token is None:
        return superseded(record, "no table, or another one")
    fence, window = split_token(state.token)
    return superseded(record, f"fence {fence}, window {window}")


def has_commit(state: TargetState, record: ControlRecord) -> bool:
    """Whether the target's control record is that of the commit ``record``."""
    control = state.control
    return control is not None and (control.token, control.attempt, control.nonce) == (
        record.token,
        record.attempt,
        record.nonce,
    )

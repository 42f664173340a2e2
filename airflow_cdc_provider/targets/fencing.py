"""Who owns a table: how a fence gets a number that nobody else has, and what is said to those who lost."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.errors import Blocked, Fenced, Problem, TargetUnavailable
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets.target import TargetState

TRIES = 50
"""Names taken by attempts that died before their commit are stepped over; this many in a row mean something else."""


def claimed(log: ChangeLog, record: ControlRecord, expected: TargetState) -> ControlRecord:
    """The record under a fence that is above the target's token and named in the log by nobody else. Raises Fenced
    (TGT022) where others name them as fast."""
    if expected.token is not None and record.token <= expected.token:  # after a foreign restore the token stays high
        record = replace(record, fence=split_token(expected.token)[0] + 1)
    for _ in range(TRIES):
        if log.claim_fence(record):
            return record
        record = replace(record, fence=max(record.fence, log.highest_fence(record.table)) + 1)
    raise Fenced(
        Problem(
            "TGT022",
            f"{TRIES} fences in a row are already named by other attempts",
            where=record.table,
            found=f"fence {record.fence}",
            do="look for a second Airflow that works on the same target",
        )
    )


def changed_since(table: str, place: str, expected: TargetState) -> Fenced:
    fence, window = split_token(expected.token or 0)
    return Fenced(
        Problem(
            "TGT020",
            "the table changed since it was looked at",
            where=f"{table} at {place}",
            found=f"no longer version {expected.version} with fence {fence}, window {window}",
            do="nothing: whoever changed it owns it now; the next run looks again",
            data="unchanged by us",
        )
    )


def left_no_trace(place: str) -> TargetUnavailable:
    return TargetUnavailable(
        Problem(
            "TGT021",
            "a fence commit failed twice and left no trace",
            where=place,
            found="the table is as it was",
            do="look at the permissions and the space of the target; the next run tries again",
            data="unchanged",
        )
    )


def cannot_go_back(place: str, to: str, found: str) -> Blocked:
    return Blocked(
        Problem(
            "TGT024",
            f"the table cannot be taken back to {to}",
            where=place,
            found=found,
            do="rewind less far, or resync the table",
            data="the table is as it was",
        )
    )


def overtaken(record: ControlRecord, found: str) -> Fenced:
    """What an attempt raises whose commit somebody else came before. ``found``: what stands or is named instead."""
    return Fenced(
        Problem(
            "TGT030",
            "somebody newer owns the table",
            where=record.table,
            found=found,
            allowed=f"to be the first with fence {record.fence}, window {record.window}",
            do="nothing: the next run looks again and goes on from what the table holds",
            data="the table holds the other commit; nothing of this attempt was applied",
        )
    )


def overtaken_by(held: TargetState, record: ControlRecord) -> Fenced:
    if held.token is None:
        return overtaken(record, "another table, or none")
    fence, window = split_token(held.token)
    return overtaken(record, f"fence {fence}, window {window}")


def is_ours(held: TargetState, record: ControlRecord) -> bool:
    """The commit that ``record`` names stands in the target."""
    found = held.control
    return found is not None and (found.token, found.attempt, found.nonce) == (
        record.token,
        record.attempt,
        record.nonce,
    )

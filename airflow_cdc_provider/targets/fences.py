"""The name of a fence in the change log, before it is committed to any target."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.cursors import ControlRecord, split_token
from airflow_cdc_provider.core.errors import Fenced, Problem
from airflow_cdc_provider.staging.log import ChangeLog

FENCE_TRIES = 50
"""Names taken by attempts that died before their commit are stepped over; this many in a row mean something else."""


def named_fence(log: ChangeLog, record: ControlRecord) -> ControlRecord:
    """The record under a fence that nobody else has named: the asked one or a higher one. Raises Fenced (TGT022)."""
    for _ in range(FENCE_TRIES):
        if log.claim_fence(record):
            return record
        record = replace(record, fence=max(record.fence, log.highest_fence(record.table)) + 1)
    raise Fenced(
        Problem(
            "TGT022",
            f"{FENCE_TRIES} fences in a row are already named by other attempts",
            where=record.table,
            found=f"fence {record.fence}",
            do="look for a second Airflow that works on the same target",
        )
    )


def above(token: int | None, record: ControlRecord) -> ControlRecord:
    """After a foreign restore the recorded token is higher than the record that counts; a new fence must pass it."""
    if token is None or record.token > token:
        return record
    return replace(record, fence=split_token(token)[0] + 1)

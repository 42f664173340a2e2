"""What the source keeps for a replicator, measured at the end of a run."""

from __future__ import annotations

from datetime import timedelta

from airflow_cdc_provider.connectors.source_features import RetainsLog
from airflow_cdc_provider.control.replicator import LogInfo, Replicator
from airflow_cdc_provider.core.errors import UNREADABLE, PositionLost
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.times import parse_utc

EVERY = timedelta(minutes=5)
"""Runs every minute do not ask the source each time."""


def measure_retention(replicator: Replicator, sealed: Position, read_at: str, at: str, log_info: LogInfo) -> None:
    """``sealed``: the end of the last window. ``read_at``: when the run has seen the end of the stream; empty if it has
    not read up to it. A source that does not answer delays the measurement by one run."""
    source, positions = replicator.source, replicator.state.positions
    if not isinstance(source, RetainsLog):
        return
    before = positions.get(replicator.name).retention
    if before.at and parse_utc(at) - parse_utc(before.at) < EVERY:
        return
    try:
        log = source.retained_log(sealed)
    except (PositionLost, *UNREADABLE) as error:
        log_info(f"the retained log of the source was not measured: {error}")
        return
    positions.update(replicator.name, retention=before.measured(log, read_at, at))

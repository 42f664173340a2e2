"""Whether a channel has events after a position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, position_of
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import KEEPALIVE_TIMEOUT_S, Connection
from airflow_cdc_provider.core.log.positions import Position

PEEK_TIMEOUT_S = 5.0
"""Existing events arrive at once. Keepalives take minutes, and a run waits for one only if it must."""
ADVANCE_AFTER_S, WAIT_AFTER_S = 3600, 6 * 3600
"""Ages at which an idle position is advanced, and at which a run waits for the keepalive that advances it: a position
expires after 72 hours."""


def read_status(
    connection: Connection,
    options: SalesforceOptions,
    position: Position,
    now_s: float,
    org_now: Callable[[], datetime],
) -> SourceStatus:
    """``org_now``: the org's clock, which gives an idle position its time. ``limit`` is the position itself: a replay
    id of the end exists only when the channel is silent. The reader ends the window by the org's clock. Raises
    PositionLost if the position is no longer served."""
    start = channel_position(position, options.channel)
    age_s = now_s - start.at_s
    timeout_s = KEEPALIVE_TIMEOUT_S if age_s > WAIT_AFTER_S else PEEK_TIMEOUT_S
    delivery = connection.peek(options.channel, start.replay_id, timeout_s)
    idle = None
    if delivery.latest and age_s > ADVANCE_AFTER_S:
        at_s = int(org_now().timestamp())
        idle = position_of(options.channel, replace(start, replay_id=delivery.latest, at_s=at_s))
    return SourceStatus(bool(delivery.events), position, idle)

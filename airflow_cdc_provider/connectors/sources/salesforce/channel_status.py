"""Whether a channel holds anything behind a place."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.source import SourceStatus
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position, position_of
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import DEAD_AFTER_S, Connection
from airflow_cdc_provider.core.log.positions import Position

LOOK_S = 5.0
"""What lies behind a place comes at once. Signs of life take minutes, and a run waits for one only when it must."""
FRESH_S, OLD_S = 3600, 6 * 3600
"""An idle place is moved on when it is older than the first, and waited for when it is older than the second: behind 72
hours it is served no more."""


def read_status(connection: Connection, options: SalesforceOptions, position: Position, now_s: float) -> SourceStatus:
    """Raises PositionLost where the place is not served any more. ``limit`` is the position itself: how far a window
    reaches shows only when the channel falls silent."""
    place = channel_position(position, options.channel)
    age_s = now_s - place.at_s
    told = connection.peek(options.channel, place.replay_id, DEAD_AFTER_S if age_s > OLD_S else LOOK_S)
    idle = None
    if told.latest and age_s > FRESH_S:
        idle = position_of(options.channel, replace(place, replay_id=told.latest, at_s=told.at_s))
    return SourceStatus(bool(told.events), position, idle)

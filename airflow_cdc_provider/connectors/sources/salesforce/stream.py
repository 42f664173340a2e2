"""Everything that a channel holds behind a place, read until it falls silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.decode import EventDecoder
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import Connection
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.sources.salesforce.types import described
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Retryable
from airflow_cdc_provider.core.log.positions import Position


def drained(
    connection: Connection,
    rest: Rest,
    options: SalesforceOptions,
    lo: Position,
    tables: Sequence[TableTask],
    epoch: int,
) -> Iterator[StreamItem]:
    """Items up to a silence of the channel, or to the end of a transaction that overflowed: the window ends there.

    A stream that fails for good behind whole transactions ends the window as a silence does: events that were
    delivered are paid for. The next run meets the failure first, and raises it.
    """
    decoder = EventDecoder(
        tables,
        lambda entity: described(rest.describe(entity)),
        connection.schema,
        options.channel,
        Transactions(channel_position(lo, options.channel), epoch),
    )
    place = channel_position(lo, options.channel)
    deliveries = connection.deliveries(options.channel, CUSTOM, place.replay_id, options.idle.total_seconds())
    ended = False
    try:
        for delivery in deliveries:
            decoder.feed(delivery)
            ended = ended or any(isinstance(item, Boundary) for item in decoder.items)
            yield from decoder.items
            decoder.items.clear()
            if decoder.overflowed or not delivery.events:
                return
    except Retryable:
        if not ended:
            raise

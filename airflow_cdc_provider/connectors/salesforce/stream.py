"""Everything that a channel holds behind a place, read until it falls silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.salesforce.decode import Decoder
from airflow_cdc_provider.connectors.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.salesforce.positions import place_of
from airflow_cdc_provider.connectors.salesforce.proto import CUSTOM
from airflow_cdc_provider.connectors.salesforce.pubsub import Connection
from airflow_cdc_provider.connectors.salesforce.rest import Rest
from airflow_cdc_provider.connectors.salesforce.transactions import Transactions
from airflow_cdc_provider.connectors.salesforce.types import described
from airflow_cdc_provider.connectors.source import Boundary, StreamItem
from airflow_cdc_provider.core.errors import Retryable
from airflow_cdc_provider.core.positions import Position
from airflow_cdc_provider.core.steps import TableTask


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
    decoder = Decoder(
        tables,
        lambda entity: described(rest.describe(entity)),
        connection.schema,
        options.channel,
        Transactions(place_of(lo, options.channel), epoch),
    )
    place = place_of(lo, options.channel)
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

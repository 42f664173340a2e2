"""Read a channel from a position to the events that exist now."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from airflow_cdc_provider.connectors.source import Boundary, CutShort, StreamItem
from airflow_cdc_provider.connectors.sources.salesforce.decode import EventDecoder
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import Connection
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.connectors.sources.salesforce.transactions import Transactions
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Retryable
from airflow_cdc_provider.core.log.positions import Position


def read_stream(
    connection: Connection,
    rest: Rest,
    options: SalesforceOptions,
    lo: Position,
    tables: Sequence[TableTask],
    epoch: int,
) -> Iterator[StreamItem]:
    """Items up to the first transaction that was committed after the read began, by the org's clock: a channel with
    several objects may never be silent. They end earlier at a silence of the channel, and after a transaction with an
    overflow.

    A stream that fails after complete transactions cuts the window short, because delivered events count against the
    org's allocation. The next run meets the failure first, and raises it.
    """
    began_s = rest.now().timestamp()
    ahead_s = round(began_s - time.time())
    decoder = EventDecoder(
        tables,
        rest.describe,
        connection.schema,
        options.channel,
        Transactions(channel_position(lo, options.channel), epoch),
        began_s,
    )
    start = channel_position(lo, options.channel)
    deliveries = connection.deliveries(options.channel, CUSTOM, start.replay_id, options.idle.total_seconds())
    transaction_ended = False
    try:
        for delivery in deliveries:
            decoder.feed(delivery.by_clock(ahead_s))
            transaction_ended = transaction_ended or any(isinstance(item, Boundary) for item in decoder.items)
            yield from decoder.items
            decoder.items.clear()
            if decoder.ended or not delivery.events:
                return
    except Retryable:
        if not transaction_ended:
            raise
        yield CutShort()

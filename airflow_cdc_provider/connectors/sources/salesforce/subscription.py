"""One Subscribe call: demand going up, deliveries coming down."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.proto import message

_END = object()


class Subscription:
    """Asks for ``demand`` events, hands them out, and asks again when the last of them is taken. To ask ahead would
    make the server end the stream, and each event that is delivered and not used counts against the org's allocation.
    A thread takes responses off the call, never more than are owed, so that waiting for the next can have a limit."""

    def __init__(
        self, call: Any, metadata: tuple[tuple[str, str], ...], channel: str, preset: int, replay_id: bytes, demand: int
    ) -> None:
        first = message("FetchRequest")(
            topic_name=channel, replay_preset=preset, replay_id=replay_id, num_requested=demand
        )
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests.put(first)
        self._responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._channel = channel
        self._demand = demand
        self._call = call(iter(self._requests.get, _END), metadata=metadata)
        threading.Thread(target=self._take, daemon=True, name="cdc-pubsub").start()

    def deliveries(self, idle_s: float) -> Iterator[Delivery]:
        """Until the server ends the call. Raises grpc.RpcError as the call does."""
        while True:
            try:
                response = self._responses.get(timeout=idle_s)
            except queue.Empty:
                yield Delivery(())
                continue
            if response is _END:
                return
            if isinstance(response, Exception):
                raise response
            events = tuple(
                ChannelEvent(one.replay_id, one.event.schema_id, one.event.payload) for one in response.events
            )
            yield Delivery(events) if events else Delivery((), response.latest_replay_id, int(time.time()))
            if not response.pending_num_requested:
                self._requests.put(message("FetchRequest")(topic_name=self._channel, num_requested=self._demand))

    def close(self) -> None:
        self._requests.put(_END)
        self._call.cancel()

    def _take(self) -> None:
        import grpc

        try:
            for response in self._call:
                self._responses.put(response)
        except grpc.RpcError as error:
            self._responses.put(error)
        else:
            self._responses.put(_END)

"""One Subscribe call of the Pub/Sub API."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent, Delivery
from airflow_cdc_provider.connectors.sources.salesforce.proto import message_class

_END = object()


class Subscription:
    """Requests ``num_requested`` events, and requests again when the last of them was delivered. The server ends a
    stream that requests ahead, and every delivered event counts against the org's allocation. A thread reads the
    responses, so that waiting for the next can have a timeout."""

    def __init__(
        self,
        call: Any,
        metadata: tuple[tuple[str, str], ...],
        channel: str,
        preset: int,
        replay_id: bytes,
        num_requested: int,
    ) -> None:
        first = message_class("FetchRequest")(
            topic_name=channel, replay_preset=preset, replay_id=replay_id, num_requested=num_requested
        )
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests.put(first)
        self._responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._channel = channel
        self._num_requested = num_requested
        self._call = call(iter(self._requests.get, _END), metadata=metadata)
        threading.Thread(target=self._read_responses, daemon=True, name="cdc-pubsub").start()

    def deliveries(self, idle_s: float) -> Iterator[Delivery]:
        """Ends when the server ends the call. Raises grpc.RpcError."""
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
                ChannelEvent(item.replay_id, item.event.schema_id, item.event.payload) for item in response.events
            )
            yield Delivery(events) if events else Delivery((), response.latest_replay_id, int(time.time()))
            if not response.pending_num_requested:
                request = message_class("FetchRequest")(topic_name=self._channel, num_requested=self._num_requested)
                self._requests.put(request)

    def close(self) -> None:
        self._requests.put(_END)
        self._call.cancel()

    def _read_responses(self) -> None:
        import grpc

        try:
            for response in self._call:
                self._responses.put(response)
        except grpc.RpcError as error:
            self._responses.put(error)
        else:
            self._responses.put(_END)

"""The Pub/Sub service: GetTopic, GetSchema, and Subscribe with flow control by the client."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc

from airflow_cdc_provider.sandbox.salesforce import wire
from airflow_cdc_provider.sandbox.salesforce.bus import Bus, Entry
from airflow_cdc_provider.sandbox.salesforce.channels import Channels, RpcRefusal
from airflow_cdc_provider.sandbox.salesforce.delivery import Delivery
from airflow_cdc_provider.sandbox.salesforce.faults import INJECTED, Faults, RpcFault
from airflow_cdc_provider.sandbox.salesforce.oauth import Tokens
from airflow_cdc_provider.sandbox.salesforce.schemas import Schemas
from airflow_cdc_provider.sandbox.salesforce.users import User

MAX_PENDING = 100
MAX_RESPONSE_BYTES = 3_000_000
HEADERS = ("accesstoken", "instanceurl", "tenantid")
STREAMS = 100
IDLE_LIMIT_S = 60.0


class PubSub:
    """``keepalive_s``: the time without an event until an empty response; ``idle_limit_s``: the longest time without a
    request for events. ``response_events``: the maximum of events in a response.
    """

    def __init__(
        self, bus: Bus, channels: Channels, schemas: Schemas, tokens: Tokens, faults: Faults, keepalive_s: float
    ) -> None:
        self.keepalive_s = keepalive_s
        self.idle_limit_s = IDLE_LIMIT_S
        self.response_events = MAX_PENDING
        self._bus, self._channels, self._schemas = bus, channels, schemas
        self._delivery, self._now = Delivery(schemas, channels.store), bus.clock.second
        self._tokens, self._faults = tokens, faults
        self._server: grpc.Server | None = None
        self._stopped = False

    def start(self, port: int = 0) -> int:
        """Listen on loopback, without TLS. Returns the port."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_send_message_length", -1)]
        server = grpc.server(futures.ThreadPoolExecutor(STREAMS, "pubsub"), options=options)
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(wire.SERVICE, self._handlers())])
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        self._server = server
        return bound

    def stop(self) -> None:
        self._stopped = True
        with self._bus.changed:
            self._bus.changed.notify_all()
        if self._server is not None:
            self._server.stop(0.2).wait()

    def get_topic(self, request: Any, context: grpc.ServicerContext, user: User, rpc_id: str) -> Any:
        topic = request.topic_name
        if not topic:
            raise RpcRefusal("INVALID_ARGUMENT", "topic.validation.empty", "Topic name can't be blank.")
        self._channels.entities(topic, user)
        entity = self._channels.entity(topic)
        schema_id = self._schemas.current(entity).id if entity else ""
        return wire.TopicInfo(
            topic_name=topic, tenant_guid=self._tokens.org_id, can_subscribe=True, schema_id=schema_id, rpc_id=rpc_id
        )

    def get_schema(self, request: Any, context: grpc.ServicerContext, user: User, rpc_id: str) -> Any:
        if not request.schema_id:
            raise RpcRefusal("INVALID_ARGUMENT", "schema.validation.failed", "Schema ID can't be blank.")
        schema = self._schemas.by_id(request.schema_id)
        if schema is None:
            raise RpcRefusal("NOT_FOUND", "schema.validation.failed", "The schema doesn't exist.")
        return wire.SchemaInfo(schema_json=schema.json, schema_id=schema.id, rpc_id=rpc_id)

    def subscribe(
        self, requests: Iterator[Any], context: grpc.ServicerContext, user: User, rpc_id: str
    ) -> Iterator[bytes]:
        first = next(requests, None)
        if first is None:
            return
        fault = self._faults.rpc_fault("Subscribe")
        if fault and fault.after_events is None:
            raise _refusal(fault)
        topic = first.topic_name
        if not topic:
            raise RpcRefusal("INVALID_ARGUMENT", "topic.validation.empty", "Topic name can't be blank.")
        self._channels.entities(topic, user)
        index = self._start(topic, first)
        demand = Demand(topic, self._bus.changed)
        demand.add(first)
        threading.Thread(target=demand.follow, args=(requests,), daemon=True).start()
        left = fault.after_events if fault else None
        while (batch := self._next(demand, index, context, user, left)) is not None:
            index = batch.index
            yield self._response(demand, batch, user, rpc_id)
            left = None if left is None else left - len(batch.entries)
            if fault and left is not None and left <= 0:
                raise _refusal(fault)

    def _start(self, topic: str, request: Any) -> int:
        preset = wire.PRESETS[request.replay_preset]
        if preset == "LATEST":
            return self._bus.tip()
        if preset == "EARLIEST":
            return self._bus.oldest()
        if not request.replay_id:
            message = "Replay ID can't be blank with the CUSTOM preset."
            raise RpcRefusal("INVALID_ARGUMENT", "subscription.fetch.replayid.validation.failed", message)
        index = self._bus.index_after(topic, request.replay_id)
        if index is None:
            message = "The Replay ID validation failed. Ensure that the Replay ID is valid."
            raise RpcRefusal("INVALID_ARGUMENT", "subscription.fetch.replayid.corrupted", message)
        return index

    def _next(
        self, demand: Demand, index: int, context: grpc.ServicerContext, user: User, left: int | None
    ) -> Batch | None:
        """The next events, an empty batch for a keepalive, None at the end. Permissions may change during the stream.

        The lock blocks publications: the replay id of a keepalive must not be after an undelivered event.
        """
        quiet_since = time.monotonic()
        with self._bus.changed:
            while context.is_active() and not self._stopped:
                if demand.refusal:
                    raise demand.refusal
                if demand.pending:
                    allowed = self._bus.allowed
                    max_events = min(demand.pending, self.response_events, max(allowed, 1), left or MAX_PENDING)
                    entities = self._channels.entities(demand.topic, user)
                    entries, index = self._bus.take(index, max_events, entities, MAX_RESPONSE_BYTES)
                    if entries and not allowed:
                        message = "The event delivery limit of the org has been exceeded."
                        raise RpcRefusal("RESOURCE_EXHAUSTED", "subscription.limit.exceeded", message)
                    if entries:
                        self._bus.count(len(entries))
                        return Batch(entries, index, entries[-1])
                elif demand.closed:
                    return None
                limit = self.keepalive_s if demand.pending else self.idle_limit_s
                wait = quiet_since + limit - time.monotonic()
                if wait <= 0 and demand.pending:
                    latest = self._bus.latest()
                    return Batch([], self._bus.tip(), latest)
                if wait <= 0:
                    raise RpcRefusal("UNAVAILABLE", "", f"no events were requested for {self.idle_limit_s} s")
                self._bus.changed.wait(min(wait, 5.0))
        return None

    def _response(self, demand: Demand, batch: Batch, user: User, rpc_id: str) -> bytes:
        """An encoded FetchResponse: the encoded events, then the other fields."""
        topic, bus = demand.topic, self._bus
        events = [
            wire.consumed(event, bus.replay_id(topic, entry))
            for entry in batch.entries
            for event in self._delivery.of(entry, self._channels.member(topic, entry.entity), user, self._now())
        ]
        rest = wire.FetchResponse(
            latest_replay_id=bus.replay_id(topic, batch.latest),
            rpc_id=rpc_id,
            pending_num_requested=demand.served(len(events)),
        )
        return b"".join(events) + bytes(rest.SerializeToString())

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {
            "GetTopic": grpc.unary_unary_rpc_method_handler(
                self._unary("GetTopic", self.get_topic),
                wire.TopicRequest.FromString,
                lambda response: response.SerializeToString(),
            ),
            "GetSchema": grpc.unary_unary_rpc_method_handler(
                self._unary("GetSchema", self.get_schema),
                wire.SchemaRequest.FromString,
                lambda response: response.SerializeToString(),
            ),
            "Subscribe": grpc.stream_stream_rpc_method_handler(
                self._streaming, wire.FetchRequest.FromString, lambda response: response
            ),
        }

    def _unary(self, method: str, call: Callable[..., Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
        def respond(request: Any, context: grpc.ServicerContext) -> Any:
            rpc_id = str(uuid.uuid4())
            try:
                fault = self._faults.rpc_fault(method)
                if fault:
                    raise _refusal(fault)
                return call(request, context, self._user(context), rpc_id)
            except RpcRefusal as refusal:
                _abort(context, refusal, rpc_id)

        return respond

    def _streaming(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[bytes]:
        rpc_id = str(uuid.uuid4())
        try:
            yield from self.subscribe(requests, context, self._user(context), rpc_id)
        except RpcRefusal as refusal:
            _abort(context, refusal, rpc_id)

    def _user(self, context: grpc.ServicerContext) -> User:
        sent = {str(key): str(value) for key, value in context.invocation_metadata()}
        for header in HEADERS:
            if not sent.get(header, "").strip():
                message = f"The {header} header is missing or blank."
                raise RpcRefusal("UNAUTHENTICATED", "service.auth.headers.invalid", message)
        user = self._tokens.user(sent["accesstoken"])
        if user is None or sent["tenantid"].rpartition("/")[2][:15] != self._tokens.org_id[:15]:
            message = "An authentication exception occurred. The token is invalid or expired."
            raise RpcRefusal("UNAUTHENTICATED", "service.auth.error", message)
        return user


@dataclass(frozen=True)
class Batch:
    """``index`` is where the next batch starts; ``latest`` the entry whose replay id a client may store."""

    entries: list[Entry]
    index: int
    latest: Entry


class Demand:
    """The number of events that a client has requested and not received, at most 100."""

    def __init__(self, topic: str, changed: threading.Condition) -> None:
        self.topic = topic
        self.pending = 0
        self.closed = False
        self.refusal: RpcRefusal | None = None
        self._changed = changed

    def add(self, request: Any) -> None:
        with self._changed:
            if request.num_requested <= 0:
                message = "The number of requested events must be greater than 0."
                self.refusal = RpcRefusal("INVALID_ARGUMENT", "subscription.fetch.requested.events.invalid", message)
            elif request.topic_name not in ("", self.topic):
                message = "A subscription can't change its topic."
                self.refusal = RpcRefusal("INVALID_ARGUMENT", "subscription.fetch.topic.mismatch", message)
            else:
                self.pending = min(MAX_PENDING, self.pending + request.num_requested)
            self._changed.notify_all()

    def served(self, count: int) -> int:
        with self._changed:
            self.pending = max(0, self.pending - count)
            return self.pending

    def follow(self, requests: Iterator[Any]) -> None:
        """Add requests until the client closes its side or disconnects."""
        try:
            for request in requests:
                self.add(request)
        except grpc.RpcError:
            pass  # the call has ended, which the stream detects itself
        finally:
            with self._changed:
                self.closed = True
                self._changed.notify_all()


def _refusal(fault: RpcFault) -> RpcRefusal:
    return RpcRefusal(fault.status, fault.code, INJECTED)


def _abort(context: grpc.ServicerContext, refusal: RpcRefusal, rpc_id: str) -> NoReturn:
    if refusal.code:
        context.set_trailing_metadata((("error-code", refusal.code), ("rpc_id", rpc_id)))
    context.abort(grpc.StatusCode[refusal.status], f"{refusal.message} rpcId: {rpc_id}")

"""A small Pub/Sub server: prepared events, keepalives, and ordered failures."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc

from airflow_cdc_provider.connectors.sources.salesforce.events import ChannelEvent
from airflow_cdc_provider.connectors.sources.salesforce.oauth import AccessToken
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM, SERVICE, message_class
from airflow_cdc_provider.connectors.sources.salesforce.pubsub import PubSub
from tests.connectors.salesforce_events import CHANNEL, SCHEMAS

ORG = "00D000000000001EAA"
PREFIX = "sfdc.platform.eventbus.grpc."
SECRET = "00D!session.secret"


@dataclass
class Failure:
    """Raised by the next call of ``method``; by a Subscribe call after ``after`` events."""

    method: str
    status: grpc.StatusCode
    code: str = ""
    after: int = 0


@dataclass
class EventServer:
    """``batch``: events per response. ``keepalive_s``: the silence before a keepalive."""

    events: list[ChannelEvent] = field(default_factory=list)
    keepalive_s: float = 60.0
    batch: int = 40
    latest: bytes = b""
    failures: list[Failure] = field(default_factory=list)
    topics: dict[str, bool] = field(default_factory=lambda: {CHANNEL: True})
    accepted: set[str] = field(default_factory=lambda: {SECRET})
    seen: list[Any] = field(default_factory=list)
    delivered: int = 0
    asked_for_schemas: list[str] = field(default_factory=list)

    def __enter__(self) -> EventServer:
        handlers = {
            "Subscribe": grpc.stream_stream_rpc_method_handler(
                self._subscribe,
                message_class("FetchRequest").FromString,
                message_class("FetchResponse").SerializeToString,
            ),
            "GetTopic": grpc.unary_unary_rpc_method_handler(
                self._topic, message_class("TopicRequest").FromString, message_class("TopicInfo").SerializeToString
            ),
            "GetSchema": grpc.unary_unary_rpc_method_handler(
                self._schema, message_class("SchemaRequest").FromString, message_class("SchemaInfo").SerializeToString
            ),
        }
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def fail(self, context: Any, failure: Failure) -> None:
        trailers = [("rpc_id", "0000")] + ([("error-code", PREFIX + failure.code)] if failure.code else [])
        context.set_trailing_metadata(tuple(trailers))
        context.abort(failure.status, f"it failed, rpcId: 0000 {failure.code}")

    def _admit(self, method: str, context: Any) -> None:
        metadata = dict(context.invocation_metadata())
        if metadata.get("accesstoken") not in self.accepted or metadata.get("tenantid") != ORG:
            self.fail(context, Failure(method, grpc.StatusCode.UNAUTHENTICATED, "service.auth.error"))
        for failure in self.failures:
            if failure.method == method and not failure.after:
                self.failures.remove(failure)
                self.fail(context, failure)

    def _topic(self, request: Any, context: Any) -> Any:
        self._admit("GetTopic", context)
        if request.topic_name not in self.topics:
            self.fail(context, Failure("GetTopic", grpc.StatusCode.NOT_FOUND, "topic.not.found"))
        return message_class("TopicInfo")(topic_name=request.topic_name, can_subscribe=self.topics[request.topic_name])

    def _schema(self, request: Any, context: Any) -> Any:
        self._admit("GetSchema", context)
        self.asked_for_schemas.append(request.schema_id)
        text = json.dumps(SCHEMAS[request.schema_id]) if request.schema_id in SCHEMAS else "{}"
        return message_class("SchemaInfo")(schema_id=request.schema_id, schema_json=text)

    def _subscribe(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self._admit("Subscribe", context)
        sent = 0
        at = -1
        for number, request in enumerate(requests):
            self.seen.append(request)
            at = self._start(request, context) if number == 0 else at
            owed = min(request.num_requested, 100)
            while owed and at < len(self.events):
                some = self._until_failure(self.events[at : at + min(owed, self.batch)], sent, context)
                at, owed, sent = at + len(some), owed - len(some), sent + len(some)
                self.delivered += len(some)
                yield response(some, owed)
            if owed:
                time.sleep(self.keepalive_s)
                yield message_class("FetchResponse")(latest_replay_id=self.latest, pending_num_requested=owed)

    def _start(self, request: Any, context: Any) -> int:
        if request.replay_preset != CUSTOM:
            return 0 if request.replay_preset else len(self.events)
        ids = [event.replay_id for event in self.events]
        if request.replay_id in ids:
            return ids.index(request.replay_id) + 1
        if request.replay_id == b"start":
            return 0
        code = "subscription.fetch.replayid.corrupted"
        self.fail(context, Failure("Subscribe", grpc.StatusCode.INVALID_ARGUMENT, code))
        raise AssertionError("abort raises")

    def _until_failure(self, some: Sequence[ChannelEvent], sent: int, context: Any) -> Sequence[ChannelEvent]:
        for failure in self.failures:
            if failure.method == "Subscribe" and failure.after - sent <= len(some):
                if failure.after == sent:
                    self.failures.remove(failure)
                    self.fail(context, failure)
                return some[: failure.after - sent]
        return some


def response(events: Sequence[ChannelEvent], owed: int) -> Any:
    made = message_class("FetchResponse")(pending_num_requested=owed)
    for event in events:
        one = made.events.add(replay_id=event.replay_id)
        one.event.schema_id, one.event.payload = event.schema_id, event.payload
    return made


@dataclass
class Tokens:
    """Returns the first token, and the next one after each renewal."""

    tokens: Sequence[str] = (SECRET,)
    renewals: int = 0
    waited: list[float] = field(default_factory=list)

    def token(self) -> AccessToken:
        text = self.tokens[min(self.renewals, len(self.tokens) - 1)]
        return AccessToken(text, "https://org.my.salesforce.com", ORG)

    def renew(self, stale: AccessToken) -> AccessToken:
        self.renewals += 1
        return self.token()

    def client(self, server: EventServer) -> PubSub:
        return PubSub(server.endpoint, False, self, self.waited.append)


def numbered(events: Sequence[ChannelEvent]) -> list[ChannelEvent]:
    """Events with distinct replay ids."""
    return [event._replace(replay_id=f"replay-{n:06d}".encode()) for n, event in zip(itertools.count(1), events)]

"""Client of the Pub/Sub API: topics, event schemas and subscriptions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_cdc_provider.connectors.sources.salesforce.event_schema import EventSchema, parse_event_schema
from airflow_cdc_provider.connectors.sources.salesforce.events import Delivery
from airflow_cdc_provider.connectors.sources.salesforce.failures import (
    AUTH_ERROR,
    CODES,
    DEFERRED,
    PREFIX,
    pubsub_failure,
)
from airflow_cdc_provider.connectors.sources.salesforce.oauth import AccessToken
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM, LATEST, SERVICE, message_class
from airflow_cdc_provider.connectors.sources.salesforce.subscription import Subscription

if TYPE_CHECKING:
    import grpc

MAX_MESSAGE_BYTES = 256 << 20
"""A response may contain a hundred events of 1 MB each."""
CALL_TIMEOUT_S = 60.0
KEEPALIVE_TIMEOUT_S = 300.0
"""The server sends a keepalive at least every 270 s."""
MAX_REQUESTED = 100
"""The server's limit of outstanding events."""
TRIES = 5
CHANNEL_OPTIONS = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
"""No gRPC keepalive pings: servers close connections that ping too often, and Salesforce sends keepalives itself."""


@dataclass(frozen=True)
class Topic:
    """``schema_id`` is empty if the channel has several objects."""

    name: str
    can_subscribe: bool
    schema_id: str


class Tokens(Protocol):
    def token(self) -> AccessToken:
        """The current token."""

    def renew(self, stale: AccessToken) -> AccessToken:
        """Replace a refused token."""


class PubSub:
    """Client of one endpoint. ``sleep`` is a seam for tests. Connect in the process that uses it: a gRPC channel does
    not survive a fork."""

    def __init__(self, endpoint: str, tls: bool, tokens: Tokens, sleep: Callable[[float], object] = time.sleep) -> None:
        self.endpoint = endpoint
        self._tls = tls
        self._tokens = tokens
        self._sleep = sleep
        self._schemas: dict[str, EventSchema] = {}

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        import grpc

        if self._tls:
            channel = grpc.secure_channel(self.endpoint, grpc.ssl_channel_credentials(), CHANNEL_OPTIONS)
        else:
            channel = grpc.insecure_channel(self.endpoint, CHANNEL_OPTIONS)
        with channel:
            yield Connection(self, channel)


class Connection:
    """Calls on an open gRPC channel. Transient failures are retried; a refused token is renewed once."""

    def __init__(self, client: PubSub, channel: grpc.Channel) -> None:
        self._client = client
        self._channel = channel

    def topic(self, name: str) -> Topic:
        """Raises CheckFailed (SRC048) if the channel does not exist, or is hidden from the user."""
        info = self._call("GetTopic", "TopicRequest", "TopicInfo", name, topic_name=name)
        return Topic(info.topic_name, info.can_subscribe, info.schema_id)

    def schema(self, schema_id: str) -> EventSchema:
        """Cached: an id is a fingerprint. Raises DecodeError if the schema is not that of a change event."""
        schemas = self._client._schemas
        if schema_id not in schemas:
            info = self._call("GetSchema", "SchemaRequest", "SchemaInfo", schema_id, schema_id=schema_id)
            schemas[schema_id] = parse_event_schema(schema_id, info.schema_json)
        return schemas[schema_id]

    def deliveries(
        self, channel: str, preset: int, replay_id: bytes, idle_s: float, num_requested: int = MAX_REQUESTED
    ) -> Generator[Delivery]:
        """Events after ``replay_id`` (preset CUSTOM). A delivery without events is a keepalive of the server, or a
        timeout of ``idle_s`` seconds. The generator does not end by itself.

        A broken stream is resumed after the last delivered event. Raises PositionLost if the position is no longer
        served, SourceUnavailable (SRC041) if the org's event deliveries are used up, which is not retried.
        """
        retries = self._retries(channel)
        while True:
            subscription = self._subscribe(channel, preset, replay_id, num_requested)
            try:
                for delivery in subscription.deliveries(idle_s):
                    yield delivery
                    last = delivery.events[-1].replay_id if delivery.events else delivery.latest
                    if last:
                        preset, replay_id = CUSTOM, last
                        retries = self._retries(channel)
                retries.handle("", "CANCELLED", "the server ended the stream")
            except _rpc_error() as error:
                retries.handle(*_error_of(error))
            finally:
                subscription.close()

    def peek(self, channel: str, replay_id: bytes, timeout_s: float) -> Delivery:
        """The first event after ``replay_id``, a keepalive, or nothing within ``timeout_s``. Requests one event only,
        because events count as delivered. Raises what ``deliveries`` raises."""
        deliveries = self.deliveries(channel, CUSTOM, replay_id, timeout_s, num_requested=1)
        try:
            return next(deliveries)
        finally:
            deliveries.close()

    def latest_position(self, channel: str) -> ChannelPosition:
        """The position after every existing event. In a quiet channel this waits for the next keepalive. Raises
        SourceUnavailable if none arrives."""
        for delivery in self.deliveries(channel, LATEST, b"", KEEPALIVE_TIMEOUT_S, num_requested=1):
            if replay_id := delivery.events[-1].replay_id if delivery.events else delivery.latest:
                return ChannelPosition(replay_id, at_s=int(time.time()))
            break
        message = f"no keepalive within {KEEPALIVE_TIMEOUT_S:.0f} s"
        raise pubsub_failure("", "UNAVAILABLE", message, self._where(channel))

    def _subscribe(self, channel: str, preset: int, replay_id: bytes, num_requested: int) -> Subscription:
        call = self._channel.stream_stream(
            f"/{SERVICE}/Subscribe",
            request_serializer=message_class("FetchRequest").SerializeToString,
            response_deserializer=message_class("FetchResponse").FromString,
        )
        return Subscription(call, self._metadata(), channel, preset, replay_id, num_requested)

    def _call(self, method: str, request: str, response: str, where: str, **fields: str) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=message_class(request).SerializeToString,
            response_deserializer=message_class(response).FromString,
        )
        retries = self._retries(where)
        while True:
            try:
                return call(message_class(request)(**fields), metadata=self._metadata(), timeout=CALL_TIMEOUT_S)
            except _rpc_error() as error:
                retries.handle(*_error_of(error))

    def _retries(self, name: str) -> _Retries:
        return _Retries(self._client._tokens, self._client._sleep, self._where(name))

    def _where(self, name: str) -> str:
        return f"{name} at {self._client.endpoint}"

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._client._tokens.token()
        return ("accesstoken", token.access_token), ("instanceurl", token.instance_url), ("tenantid", token.org_id)


class _Retries:
    """Retries of successive failures: a refused token is renewed once, transient failures are retried with backoff."""

    def __init__(self, tokens: Tokens, sleep: Callable[[float], object], where: str) -> None:
        self._tokens = tokens
        self._token = tokens.token()
        self._sleep = sleep
        self._where = where
        self._failures = 0
        self._renewed = False

    def handle(self, code: str, status: str, message: str) -> None:
        """Return when the caller may retry, else raise the failure."""
        if code == AUTH_ERROR and not self._renewed:
            self._renewed = True
            self._tokens.renew(self._token)
            return
        failure = pubsub_failure(code, status, message, self._where)
        self._failures += 1
        if not failure.retryable or code in DEFERRED or self._failures == TRIES:
            raise failure from None
        self._sleep(random.uniform(0.5, 1) * 2**self._failures)


def _error_of(error: Any) -> tuple[str, str, str]:
    """Salesforce's code without its prefix, gRPC's status, and the message."""
    trailers = dict(error.trailing_metadata() or ())
    status = error.code().name
    code = str(trailers.get("error-code", "")).removeprefix(PREFIX)
    return code or CODES.get(status, ""), status, error.details() or ""


def _rpc_error() -> Any:
    import grpc

    return grpc.RpcError

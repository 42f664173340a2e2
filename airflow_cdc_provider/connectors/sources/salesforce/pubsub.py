"""The Pub/Sub API: what a channel is, what a schema says, and its events from a place on."""

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
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM, LATEST, SERVICE, message
from airflow_cdc_provider.connectors.sources.salesforce.subscription import Subscription

if TYPE_CHECKING:
    import grpc

LARGEST_MESSAGE_BYTES = 256 << 20
"""A response may hold a hundred events of 1 MB each."""
CALL_TIMEOUT_S = 60.0
DEAD_AFTER_S = 300.0
"""The server gives a sign of life every 270 s at the latest."""
DEMAND = 100
"""The server clamps what is outstanding to this."""
TRIES = 5
CHANNEL_OPTIONS = [("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES)]
"""No pings of gRPC's own: a server hangs up on those that come too often, and Salesforce gives signs of life itself."""


@dataclass(frozen=True)
class Topic:
    """``schema_id`` is empty for a channel of several objects."""

    name: str
    can_subscribe: bool
    schema_id: str


class Tokens(Protocol):
    def token(self) -> AccessToken:
        """The token in use."""

    def renewed(self, stale: AccessToken) -> AccessToken:
        """The one that replaces it."""


class PubSub:
    """A client of one endpoint. ``sleep`` is a seam for tests. Connect where it is used: a gRPC channel does not
    survive a fork."""

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
    """Calls on an open gRPC channel. A call that may succeed later is tried again; a refused token is renewed once."""

    def __init__(self, client: PubSub, channel: grpc.Channel) -> None:
        self._client = client
        self._channel = channel

    def topic(self, name: str) -> Topic:
        """Raises CheckFailed (SRC048) where there is no such channel or it is hidden from the user."""
        told = self._call("GetTopic", "TopicRequest", "TopicInfo", name, topic_name=name)
        return Topic(told.topic_name, told.can_subscribe, told.schema_id)

    def schema(self, schema_id: str) -> EventSchema:
        """Asked for once: an id is a fingerprint. Raises DecodeError where it is no schema of a change event."""
        known = self._client._schemas
        if schema_id not in known:
            told = self._call("GetSchema", "SchemaRequest", "SchemaInfo", schema_id, schema_id=schema_id)
            known[schema_id] = parse_event_schema(schema_id, told.schema_json)
        return known[schema_id]

    def deliveries(
        self, channel: str, preset: int, replay_id: bytes, idle_s: float, demand: int = DEMAND
    ) -> Generator[Delivery]:
        """Events behind ``replay_id`` (preset CUSTOM), as they come. A delivery without events is a sign of life of the
        server, or of ``idle_s`` seconds without any; whoever has enough then stops asking.

        A stream that breaks goes on behind the last event given out. Raises PositionLost where the position is not
        served any more, SourceUnavailable (SRC041) where the org's deliveries are used up: that does not pass soon.
        """
        patience = self._patience(channel)
        while True:
            subscription = self._subscribe(channel, preset, replay_id, demand)
            try:
                for delivery in subscription.deliveries(idle_s):
                    yield delivery
                    last = delivery.events[-1].replay_id if delivery.events else delivery.latest
                    if last:
                        preset, replay_id = CUSTOM, last
                        patience = self._patience(channel)
                patience.spend("", "CANCELLED", "the server ended the stream")
            except _rpc_error() as error:
                patience.spend(*_told(error))
            finally:
                subscription.close()

    def peek(self, channel: str, replay_id: bytes, wait_s: float) -> Delivery:
        """The first event behind the place, or a sign of life, or nothing within ``wait_s``. What it shows counts as
        delivered, so it shows one. Raises what ``deliveries`` raises."""
        deliveries = self.deliveries(channel, CUSTOM, replay_id, wait_s, demand=1)
        try:
            return next(deliveries)
        finally:
            deliveries.close()

    def newest(self, channel: str) -> ChannelPosition:
        """The place behind everything that the channel holds now. In a quiet channel this takes until the next sign of
        life. Raises SourceUnavailable where none comes."""
        for delivery in self.deliveries(channel, LATEST, b"", DEAD_AFTER_S, demand=1):
            if replay_id := delivery.events[-1].replay_id if delivery.events else delivery.latest:
                return ChannelPosition(replay_id, at_s=int(time.time()))
            break
        raise pubsub_failure("", "UNAVAILABLE", f"no sign of life in {DEAD_AFTER_S:.0f} s", self._where(channel))

    def _subscribe(self, channel: str, preset: int, replay_id: bytes, demand: int) -> Subscription:
        call = self._channel.stream_stream(
            f"/{SERVICE}/Subscribe",
            request_serializer=message("FetchRequest").SerializeToString,
            response_deserializer=message("FetchResponse").FromString,
        )
        return Subscription(call, self._metadata(), channel, preset, replay_id, demand)

    def _call(self, method: str, request: str, response: str, where: str, **fields: str) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=message(request).SerializeToString,
            response_deserializer=message(response).FromString,
        )
        patience = self._patience(where)
        while True:
            try:
                return call(message(request)(**fields), metadata=self._metadata(), timeout=CALL_TIMEOUT_S)
            except _rpc_error() as error:
                patience.spend(*_told(error))

    def _patience(self, what: str) -> _Patience:
        return _Patience(self._client._tokens, self._client._sleep, self._where(what))

    def _where(self, what: str) -> str:
        return f"{what} at {self._client.endpoint}"

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._client._tokens.token()
        return ("accesstoken", token.access_token), ("instanceurl", token.instance_url), ("tenantid", token.org_id)


class _Patience:
    """What a row of failures leaves of it: a refused token is renewed once, what may pass is waited for."""

    def __init__(self, tokens: Tokens, sleep: Callable[[float], object], where: str) -> None:
        self._tokens = tokens
        self._token = tokens.token()
        self._sleep = sleep
        self._where = where
        self._failures = 0
        self._renewed = False

    def spend(self, code: str, status: str, message: str) -> None:
        """Return when it is time to try again, else raise the failure in our words."""
        if code == AUTH_ERROR and not self._renewed:
            self._renewed = True
            self._tokens.renewed(self._token)
            return
        failure = pubsub_failure(code, status, message, self._where)
        self._failures += 1
        if not failure.retryable or code in DEFERRED or self._failures == TRIES:
            raise failure from None
        self._sleep(random.uniform(0.5, 1) * 2**self._failures)


def _told(error: Any) -> tuple[str, str, str]:
    """Salesforce's code without its prefix, gRPC's status, and the message."""
    trailers = dict(error.trailing_metadata() or ())
    status = error.code().name
    code = str(trailers.get("error-code", "")).removeprefix(PREFIX)
    return code or CODES.get(status, ""), status, error.details() or ""


def _rpc_error() -> Any:
    import grpc

    return grpc.RpcError

"""A plain subscriber for the tests of the sandbox org, written as a client of the real service."""

from __future__ import annotations

import io
import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fastavro
import grpc

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg, wire
from airflow_cdc_provider.sandbox.salesforce.state import OrgState

LATEST, EARLIEST, CUSTOM = range(3)
ALL = "/data/ChangeEvents"


@dataclass
class ReceivedEvent:
    """One received event: its header, the values of its body that are not null, and the names of its bitmaps."""

    header: dict[str, Any]
    body: dict[str, Any]
    replay_id: bytes
    schema_id: str
    changed: list[str]
    nulled: list[str]
    diffs: list[str]

    @property
    def kind(self) -> str:
        return str(self.header["changeType"])

    @property
    def ids(self) -> list[str]:
        return list(self.header["recordIds"])


@dataclass
class Subscriber:
    """An empty ``token`` stands for a new one of the integration user."""

    org: SalesforceOrg
    token: str = ""
    schemas: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        self.channel = grpc.insecure_channel(self.org.pubsub_endpoint, options=options)
        self.token = self.token or self.org.tokens.issue(self.org.integration)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("accesstoken", self.token), ("instanceurl", self.org.instance_url), ("tenantid", self.org.org_id))

    def topic(self, name: str) -> Any:
        call = self.channel.unary_unary(
            "/eventbus.v1.PubSub/GetTopic", wire.TopicRequest.SerializeToString, wire.TopicInfo.FromString
        )
        return call(wire.TopicRequest(topic_name=name), metadata=self.metadata)

    def schema(self, schema_id: str) -> Any:
        if schema_id not in self.schemas:
            call = self.channel.unary_unary(
                "/eventbus.v1.PubSub/GetSchema", wire.SchemaRequest.SerializeToString, wire.SchemaInfo.FromString
            )
            answer = call(wire.SchemaRequest(schema_id=schema_id), metadata=self.metadata)
            self.schemas[schema_id] = fastavro.parse_schema(json.loads(answer.schema_json))
        return self.schemas[schema_id]

    @contextmanager
    def stream(self, preset: int = EARLIEST, replay_id: bytes = b"", topic: str = ALL) -> Iterator[Stream]:
        call = self.channel.stream_stream(
            "/eventbus.v1.PubSub/Subscribe", wire.FetchRequest.SerializeToString, wire.FetchResponse.FromString
        )
        requests: queue.Queue[Any] = queue.Queue()
        running = call(iter(requests.get, None), metadata=self.metadata)
        try:
            yield Stream(
                self, running, requests, {"topic_name": topic, "replay_preset": preset, "replay_id": replay_id}
            )
        finally:
            requests.put(None)
            running.cancel()

    def read(self, preset: int = EARLIEST, replay_id: bytes = b"", topic: str = ALL) -> list[ReceivedEvent]:
        """All events up to the first keepalive."""
        found: list[ReceivedEvent] = []
        with self.stream(preset, replay_id, topic) as stream:
            pending = 0
            while True:
                if pending == 0:
                    stream.ask(100)
                response = stream.next()
                if not response.events:
                    return found
                found += [self.decoded(event) for event in response.events]
                pending = response.pending_num_requested

    def decoded(self, event: Any) -> ReceivedEvent:
        schema_id = event.event.schema_id
        return decoded(event.event.payload, self.schema(schema_id), schema_id, event.replay_id)


@dataclass
class Stream:
    subscriber: Subscriber
    call: Any
    requests: queue.Queue[Any]
    first: dict[str, Any]

    def ask(self, count: int, **more: Any) -> None:
        self.requests.put(wire.FetchRequest(num_requested=count, **{**self.first, **more}))
        self.first = {}

    def next(self) -> Any:
        return next(self.call)


def decoded(payload: bytes, schema: Any, schema_id: str, replay_id: bytes = b"") -> ReceivedEvent:
    body: Any = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
    header = body.pop("ChangeEventHeader")
    known = {name: value for name, value in body.items() if value is not None}
    names = [names_of(schema, header[key]) for key in ("changedFields", "nulledFields", "diffFields")]
    return ReceivedEvent(header, known, replay_id, schema_id, *names)


def published(org: OrgState) -> list[ReceivedEvent]:
    """All events on the bus, read without the service in front of it."""
    names = frozenset(org.store.tables)
    events = [entry.event for entry in org.bus.take(0, 1_000_000, names)[0] if entry.event]
    found = []
    for event in events:
        schema = org.schemas.by_id(event.schema_id)
        assert schema is not None
        parsed = fastavro.parse_schema(json.loads(schema.json))
        found.append(decoded(event.payload, parsed, event.schema_id))
    return found


def names_of(schema: Any, bitmaps: list[str]) -> list[str]:
    """The fields that bitmaps stand for, ``Compound.Member`` for parts."""
    fields = schema["fields"]
    found = []
    for element in bitmaps:
        parent, _, digits = element.rpartition("-")
        numbers = bits(digits)
        if parent:
            (record,) = [one for one in fields[int(parent)]["type"] if isinstance(one, dict)] or [None]
            members = (record or named(schema, fields[int(parent)]["type"][-1]))["fields"]
            found += [f"{fields[int(parent)]['name']}.{members[index]['name']}" for index in numbers]
        else:
            found += [fields[index]["name"] for index in numbers]
    return found


def bits(digits: str) -> list[int]:
    number = int(digits, 16)
    return [index for index in range(number.bit_length()) if number >> index & 1]


def named(schema: Any, name: str) -> Any:
    """A record type that an earlier field defines."""
    kinds = [kind for field in schema["fields"] for kind in field["type"] if isinstance(kind, dict)]
    return next(kind for kind in kinds if kind["name"].endswith(name.rpartition(".")[2]))


def error_code(error: grpc.RpcError) -> str:
    """The code in the trailers, without the common prefix."""
    trailers = dict(error.trailing_metadata() or ())
    return str(trailers.get("error-code", "")).removeprefix("sfdc.platform.eventbus.grpc.")

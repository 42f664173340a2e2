"""Channels: which objects a topic carries, and whether this user may read it."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_cdc_provider.sandbox.salesforce.storage import Store
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

STANDARD = "ChangeEvents"
CODES = "sfdc.platform.eventbus.grpc."


class RpcRefusal(Exception):
    """``status`` is the name of a gRPC status, ``code`` the whole error code that goes into the trailers."""

    def __init__(self, status: str, suffix: str, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code = CODES + suffix if suffix else ""


@dataclass(frozen=True)
class Member:
    """A selected object. A filter takes events away without a word; ``enriched`` fields are added to others."""

    entity: str
    filter_expression: str | None = None
    enriched: tuple[str, ...] = ()


@dataclass
class Channels:
    """``selected`` is what Setup switched on for /data/ChangeEvents; ``custom`` are channels named …__chn."""

    store: Store
    selected: list[Member] = field(default_factory=list)
    custom: dict[str, list[Member]] = field(default_factory=dict)

    def captured(self) -> set[str]:
        """All objects whose changes make events."""
        members = [*self.selected, *(member for members in self.custom.values() for member in members)]
        return {member.entity for member in members}

    def entities(self, topic: str, user: User) -> frozenset[str]:
        """Raises RpcRefusal. A channel of several objects leaves out what the user may not see, without a word."""
        name = topic.removeprefix("/data/")
        if not topic.startswith("/data/"):
            raise self._unknown(topic)
        if name == STANDARD or name in self.custom:
            members = self.selected if name == STANDARD else self.custom[name]
            return frozenset(member.entity for member in members if user.may(member.entity) is Access.ALL)
        entity = self.entity(topic)
        if entity is None:
            raise self._unknown(topic)
        if user.may(entity) is not Access.ALL:
            message = f"You don't have permission to subscribe to the topic: {topic}."
            raise RpcRefusal("PERMISSION_DENIED", "subscription.topic.cannot.subscribe", message)
        return frozenset([entity])

    def member(self, topic: str, entity: str) -> Member | None:
        """What a channel of several objects has selected; one of a single object has no members."""
        name = topic.removeprefix("/data/")
        members = self.selected if name == STANDARD else self.custom.get(name, [])
        return next((member for member in members if member.entity == entity), None)

    def entity(self, topic: str) -> str | None:
        """The one object of a single-object channel."""
        events = {table.type.event_name: name for name, table in self.store.tables.items()}
        entity = events.get(topic.removeprefix("/data/"))
        return entity if entity in self.captured() else None

    @staticmethod
    def _unknown(topic: str) -> RpcRefusal:
        return RpcRefusal("NOT_FOUND", "topic.not.found", f"The specified topic {topic} doesn't exist.")

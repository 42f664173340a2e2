"""Channels: the objects of a topic, and whether a user may read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from airflow_cdc_provider.sandbox.salesforce.storage import Store
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

STANDARD = "ChangeEvents"
NUMBERS = count(1)
CODES = "sfdc.platform.eventbus.grpc."


class RpcRefusal(Exception):
    """``status`` is the name of a gRPC status, ``code`` the full error code in the trailers."""

    def __init__(self, status: str, suffix: str, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code = CODES + suffix if suffix else ""


@dataclass(frozen=True)
class Member:
    """A selected object. A filter removes events silently; ``enriched`` fields are added to the remaining ones.
    ``number``: of the record, another one for each new member."""

    entity: str
    filter_expression: str | None = None
    enriched: tuple[str, ...] = ()
    number: int = field(default_factory=lambda: next(NUMBERS), compare=False)


@dataclass
class Channels:
    """``selected``: the members of the standard channel /data/ChangeEvents; ``custom``: channels named …__chn."""

    store: Store
    selected: list[Member] = field(default_factory=list)
    custom: dict[str, list[Member]] = field(default_factory=dict)

    def captured(self) -> set[str]:
        """The objects whose changes have events."""
        members = [*self.selected, *(member for members in self.custom.values() for member in members)]
        return {member.entity for member in members}

    def entities(self, topic: str, user: User) -> frozenset[str]:
        """Raises RpcRefusal. A channel of several objects silently omits objects that the user may not see."""
        name = topic.removeprefix("/data/")
        if not topic.startswith("/data/"):
            raise self._unknown(topic)
        if name == STANDARD or name in self.custom:
            members = self.selected if name == STANDARD else self.custom[name]
            return frozenset(member.entity for member in members if user.access_to(member.entity) is Access.ALL)
        entity = self.entity(topic)
        if entity is None:
            raise self._unknown(topic)
        if user.access_to(entity) is not Access.ALL:
            message = f"You don't have permission to subscribe to the topic: {topic}."
            raise RpcRefusal("PERMISSION_DENIED", "subscription.topic.cannot.subscribe", message)
        return frozenset([entity])

    def member(self, topic: str, entity: str) -> Member | None:
        """The member of a channel of several objects. A channel of one object has no members."""
        name = topic.removeprefix("/data/")
        members = self.selected if name == STANDARD else self.custom.get(name, [])
        return next((member for member in members if member.entity == entity), None)

    def entity(self, topic: str) -> str | None:
        """The object of a channel of one object."""
        events = {table.type.event_name: name for name, table in self.store.tables.items()}
        entity = events.get(topic.removeprefix("/data/"))
        return entity if entity in self.captured() else None

    @staticmethod
    def _unknown(topic: str) -> RpcRefusal:
        return RpcRefusal("NOT_FOUND", "topic.not.found", f"The specified topic {topic} doesn't exist.")

"""The objects that a channel carries, and the filters on their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.event_schema import entity_of
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.core.errors import CheckFailed

STANDARD_CHANNEL = "/data/ChangeEvents"
CHANNELS = "SELECT Id, DeveloperName FROM PlatformEventChannel"
MEMBERS = "SELECT Id, EventChannel, SelectedEntity, FilterExpression FROM PlatformEventChannelMember"


@dataclass(frozen=True)
class ChannelFacts:
    """``filters``: object → filter expression of its events. ``members``: object → id of its member, another one each
    time that the object is added to the channel."""

    entities: frozenset[str] = frozenset()
    filters: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)


def is_custom(channel: str) -> bool:
    return channel.endswith("__chn")


def single_entity(channel: str) -> str:
    """The object of a single-object channel; empty for other channels."""
    name = channel.removeprefix("/data/")
    return entity_of(name) if name.endswith("ChangeEvent") else ""


def read_channel(rest: Rest, channel: str) -> ChannelFacts:
    """Raises CheckFailed (SRC052) if the user has no permission to read the members of the channel."""
    entity = single_entity(channel)
    try:
        members = rest.tooling(MEMBERS)
        channels = rest.tooling(CHANNELS)
    except CheckFailed as error:
        raise CheckFailed.of(
            "SRC052",
            f"the members of channel {channel} cannot be read",
            found=error.problems[0].found,
            do="grant View Setup and Configuration to the user: the stream omits the changes of a missing member"
            " without an error",
        ) from error
    facts = channel_facts(STANDARD_CHANNEL if entity else channel, members, channels)
    if not entity:
        return facts
    of_entity = (
        {name: text for name, text in texts.items() if name == entity} for texts in (facts.filters, facts.members)
    )
    return ChannelFacts(frozenset({entity}), *of_entity)


def channel_facts(
    channel: str, members: Iterable[Mapping[str, Any]], channels: Iterable[Mapping[str, Any]]
) -> ChannelFacts:
    """``EventChannel`` of a member is the name or the id of its channel. The name of a custom channel may lack the
    suffix ``__chn``."""
    name = channel.removeprefix("/data/")
    ids = {name, name.removesuffix("__chn")}
    ids |= {str(row["Id"]) for row in channels if row["DeveloperName"] in ids}
    selected = [member for member in members if str(member["EventChannel"]) in ids]
    return ChannelFacts(
        frozenset(entity_of(str(row["SelectedEntity"])) for row in selected),
        {entity_of(str(row["SelectedEntity"])): str(text) for row in selected if (text := row.get("FilterExpression"))},
        {entity_of(str(row["SelectedEntity"])): str(row["Id"]) for row in selected},
    )

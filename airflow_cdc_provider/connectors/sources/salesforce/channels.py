"""Which objects a channel carries, and whether it leaves events out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.event_schema import entity_of
from airflow_cdc_provider.connectors.sources.salesforce.rest import Rest
from airflow_cdc_provider.core.errors import CheckFailed, Problem

STANDARD = "/data/ChangeEvents"
CHANNELS = "SELECT Id, DeveloperName FROM PlatformEventChannel"
MEMBERS = "SELECT EventChannel, SelectedEntity, FilterExpression FROM PlatformEventChannelMember"


@dataclass(frozen=True)
class ChannelFacts:
    """``filters``: object -> expression that an event must fulfil to be sent."""

    entities: frozenset[str] = frozenset()
    filters: Mapping[str, str] = field(default_factory=dict)


def is_custom(channel: str) -> bool:
    return channel.endswith("__chn")


def own_entity(channel: str) -> str:
    """The object of a channel of one object; empty for a channel of several."""
    name = channel.removeprefix("/data/")
    return entity_of(name) if name.endswith("ChangeEvent") else ""


def read_channel(rest: Rest, channel: str) -> ChannelFacts:
    """Raises CheckFailed (SRC052) where the user may not see which objects the channel carries."""
    own = own_entity(channel)
    try:
        members = rest.tooling(MEMBERS)
        channels = rest.tooling(CHANNELS)
    except CheckFailed as error:
        raise CheckFailed(
            Problem(
                "SRC052",
                f"the members of channel {channel} cannot be read",
                found=error.problems[0].found,
                do="grant View Setup and Configuration to the user: a missing member would be silence, not an error",
            )
        ) from error
    facts = channel_facts(STANDARD if own else channel, members, channels)
    if not own:
        return facts
    return ChannelFacts(frozenset({own}), {o: text for o, text in facts.filters.items() if o == own})


def channel_facts(
    channel: str, members: Iterable[Mapping[str, Any]], channels: Iterable[Mapping[str, Any]]
) -> ChannelFacts:
    """A member names its channel by name or by id; a custom channel's name may bear ``__chn`` or not."""
    plain = channel.removeprefix("/data/")
    names = {plain, plain.removesuffix("__chn")}
    names |= {str(one["Id"]) for one in channels if one["DeveloperName"] in names}
    ours = [one for one in members if str(one["EventChannel"]) in names]
    return ChannelFacts(
        frozenset(entity_of(str(one["SelectedEntity"])) for one in ours),
        {entity_of(str(one["SelectedEntity"])): str(text) for one in ours if (text := one.get("FilterExpression"))},
    )

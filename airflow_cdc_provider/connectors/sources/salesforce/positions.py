"""Positions in a channel, and the order keys of its records.

A replay id is opaque: it can only be sent back and compared for equality. So a position also has the number of
transactions of this epoch up to it, which gives the order.

    order key = epoch 8 · transaction 16 · sequence number in it 8 · arrival in it 8

All digits are hex. Salesforce numbers the events within a transaction. One event may change several records, and two
events of an enriched channel may have the same number: the arrival orders these.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_cdc_provider.core.errors import PositionLost
from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

SPREAD = timedelta(seconds=1)
"""How much earlier than the one before an event may have been committed, by its header."""


@dataclass(frozen=True)
class ChannelPosition:
    """The position after the event ``replay_id``, the last of transaction number ``transactions``. ``at_s`` (since
    1970) is the commit time of that event, or the time of the keepalive: replay ids are served for 72 hours.
    ``instance`` is the instance of the org at that time: replay ids are not valid on another.
    """

    replay_id: bytes
    transactions: int = 0
    at_s: int = 0
    instance: str = ""


def position_of(channel: str, position: ChannelPosition) -> dict[str, str]:
    time = f"{datetime.fromtimestamp(position.at_s, UTC).replace(tzinfo=None).isoformat()}Z"
    parts = [str(position.transactions), b64encode(position.replay_id).decode("ascii"), time]
    return {channel: " ".join([*parts, position.instance] if position.instance else parts)}


def channel_position(position: Position, channel: str) -> ChannelPosition:
    """Raises PositionLost (SRC013) if the position is in another channel, where its replay id is not valid."""
    if channel not in position:
        raise PositionLost.of(
            "SRC013",
            "the position belongs to another channel",
            where=channel,
            found=", ".join(sorted(position)) or "no channel",
            allowed=f"a position in {channel}",
            data="the target tables contain the changes up to their cursors; later changes are not in the log",
            do="restore the old channel under `source`, or copy the tables again: airflow cdc resync",
        )
    count, replay_id, time, *instance = position[channel].split(" ")
    return ChannelPosition(b64decode(replay_id), int(count), int(datetime.fromisoformat(time).timestamp()), *instance)


def committed_before(position: ChannelPosition) -> datetime:
    """The latest commit time that an event before the position may have."""
    return datetime.fromtimestamp(position.at_s, UTC) + SPREAD


def require_instance(position: ChannelPosition, instance: str, channel: str) -> None:
    """Raises PositionLost (SRC013) if the org was moved to another instance after the position."""
    if position.instance in ("", instance):
        return
    raise PositionLost.of(
        "SRC013",
        "the org was moved to another instance, where the position is not valid",
        where=channel,
        found=f"instance {instance}",
        allowed=f"instance {position.instance}",
        data="the target tables contain the changes up to their cursors; later changes are not in the log",
        do="copy the tables again: airflow cdc resync; `reconcile: auto` under `source` does that automatically",
    )


def order_key(epoch: int, transaction: int, sequence: int, arrival: int) -> str:
    return f"{epoch_prefix(epoch)}{transaction:016x}{sequence:08x}{arrival:08x}"


def floor_key(epoch: int, position: ChannelPosition) -> str:
    """Order key of a copy with this anchor: it contains every change up to it."""
    return f"{epoch_prefix(epoch)}{position.transactions:016x}{'f' * 16}"

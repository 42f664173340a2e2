"""Places in a channel, and the order keys of its records.

A replay id is opaque: it is kept, handed back and compared for equality, nothing else. So every place also counts the
transactions of this epoch up to it, and the count gives the order.

    order key = epoch 8 · transaction 16 · sequence number in it 8 · arrival in it 8

All digits are hex. Within a transaction Salesforce numbers its events; one event may change several records, and two
events may bear one number where a channel is enriched: there the arrival decides.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_cdc_provider.core.errors import PositionLost, Problem
from airflow_cdc_provider.core.log.positions import Position, epoch_prefix


@dataclass(frozen=True)
class ChannelPosition:
    """Behind the event ``replay_id``, the last one of transaction number ``transactions``. ``at_s`` (since 1970) is
    when that event was committed, or when the server said that there was no more: replay ids are served for 72 hours.
    ``instance`` is where the org lived then: on another one its replay ids mean nothing.
    """

    replay_id: bytes
    transactions: int = 0
    at_s: int = 0
    instance: str = ""


def position_of(channel: str, place: ChannelPosition) -> dict[str, str]:
    moment = f"{datetime.fromtimestamp(place.at_s, UTC).replace(tzinfo=None).isoformat()}Z"
    words = [str(place.transactions), b64encode(place.replay_id).decode("ascii"), moment]
    return {channel: " ".join([*words, place.instance] if place.instance else words)}


def channel_position(position: Position, channel: str) -> ChannelPosition:
    """Raises PositionLost (SRC013) where the position is one of another channel: a replay id means nothing there."""
    if channel not in position:
        raise PositionLost(
            Problem(
                "SRC013",
                "our position is one of another channel",
                where=channel,
                found=", ".join(sorted(position)) or "no channel",
                allowed=f"a position in {channel}",
                data="the target tables stand at their cursors; changes after them are not in the log",
                do="name the old channel again under `source`, or copy the tables anew: airflow cdc resync",
            )
        )
    count, replay_id, moment, *instance = position[channel].split(" ")
    return ChannelPosition(b64decode(replay_id), int(count), int(datetime.fromisoformat(moment).timestamp()), *instance)


def require_instance(place: ChannelPosition, instance: str, channel: str) -> None:
    """Raises PositionLost (SRC013) where the org has moved since the place was met."""
    if place.instance in ("", instance):
        return
    raise PositionLost(
        Problem(
            "SRC013",
            "the org has moved: our position means nothing where it lives now",
            where=channel,
            found=f"instance {instance}",
            allowed=f"instance {place.instance}",
            data="the target tables stand at their cursors; changes after them are not in the log",
            do="copy the tables anew: airflow cdc resync; with `reconcile: auto` under `source` that happens by itself",
        )
    )


def order_key(epoch: int, transaction: int, sequence: int, arrival: int) -> str:
    return f"{epoch_prefix(epoch)}{transaction:016x}{sequence:08x}{arrival:08x}"


def floor_key(epoch: int, place: ChannelPosition) -> str:
    """Order key of a copy begun at this place: it holds every record up to it."""
    return f"{epoch_prefix(epoch)}{place.transactions:016x}{'f' * 16}"

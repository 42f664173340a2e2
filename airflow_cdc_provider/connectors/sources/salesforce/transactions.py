"""Where transactions begin and end. Pure.

No event says that it is the last of its transaction. A transaction is known to be whole when an event of another one
comes, when the server says that it has nothing more, or when nothing came for long enough. Numbers inside a transaction
may have holes, where objects changed that the channel does not carry.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, order_key


class Transactions:
    """Starts behind ``place``, outside of any transaction."""

    def __init__(self, place: ChannelPosition, epoch: int) -> None:
        self._ended = place
        self._epoch = epoch
        self._key = ""
        self._last = place.replay_id
        self._last_s = place.at_s
        self._arrival = 0
        self._sequence = 0

    def meet(self, key: str, replay_id: bytes, at_s: int) -> ChannelPosition | None:
        """An event of transaction ``key``. The end of the one before, where this one begins another."""
        ended = None
        if key != self._key:
            ended = self._end(self._last, self._last_s) if self._key else None
            self._key = key
            self._arrival = self._sequence = 0
        self._last = replay_id
        self._last_s = at_s
        return ended

    def meet_unknown(self, replay_id: bytes) -> None:
        """An event that does not say whose it is counts with its neighbours: it must not be stepped over."""
        self._key = self._key or "unknown"
        self._last = replay_id

    def rest(self, latest: bytes, at_s: int) -> ChannelPosition | None:
        """Nothing more is to be had now: what is open is whole. None where we stood there already."""
        if self._key:
            return self._end(latest, at_s) if latest else self._end(self._last, self._last_s)
        if latest in (b"", self._ended.replay_id):
            return None
        self._ended = replace(self._ended, replay_id=latest, at_s=at_s)
        return self._ended

    def next_order(self, sequence: int | None = None) -> str:
        """The order key of the next record of the open transaction; of one without a number behind the last one."""
        self._arrival += 1
        self._sequence = self._sequence if sequence is None else sequence
        return order_key(self._epoch, self._ended.transactions + 1, self._sequence, self._arrival)

    def _end(self, replay_id: bytes, at_s: int) -> ChannelPosition:
        self._ended = replace(self._ended, replay_id=replay_id, transactions=self._ended.transactions + 1, at_s=at_s)
        self._key = ""
        self._arrival = self._sequence = 0
        return self._ended

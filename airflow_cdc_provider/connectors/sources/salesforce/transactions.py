"""Find the ends of transactions. Pure.

No event is marked as the last of its transaction. A transaction is complete when an event of another one arrives, when
the server sends a keepalive, or when no event arrives for long enough. Sequence numbers may have gaps, because the
transaction may change objects that the channel does not carry.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, order_key


class Transactions:
    """Starts at ``position``, outside of any transaction."""

    def __init__(self, position: ChannelPosition, epoch: int) -> None:
        self._ended = position
        self._epoch = epoch
        self._key = ""
        self._last = position.replay_id
        self._last_s = position.at_s
        self._arrival = 0
        self._sequence = 0

    def add(self, key: str, replay_id: bytes, at_s: int) -> ChannelPosition | None:
        """Add an event of transaction ``key``. Returns the end of the previous transaction if this is the first event
        of another."""
        ended = None
        if key != self._key:
            ended = self._end(self._last, self._last_s) if self._key else None
            self._key = key
            self._arrival = self._sequence = 0
        self._last = replay_id
        self._last_s = at_s
        return ended

    def add_unknown(self, replay_id: bytes) -> None:
        """Add an event without transaction key to the open transaction, so that no position skips it."""
        self._key = self._key or "unknown"
        self._last = replay_id

    def finish(self, latest: bytes, at_s: int) -> ChannelPosition | None:
        """There are no more events now, so the open transaction is complete. Returns None if the position is the same
        as before."""
        if self._key:
            return self._end(latest, at_s) if latest else self._end(self._last, self._last_s)
        if latest in (b"", self._ended.replay_id):
            return None
        self._ended = replace(self._ended, replay_id=latest, at_s=at_s)
        return self._ended

    def next_order_key(self, sequence: int | None = None) -> str:
        """The order key of the next record of the open transaction. A record without sequence number has the last
        one's."""
        self._arrival += 1
        self._sequence = self._sequence if sequence is None else sequence
        return order_key(self._epoch, self._ended.transactions + 1, self._sequence, self._arrival)

    def _end(self, replay_id: bytes, at_s: int) -> ChannelPosition:
        self._ended = replace(self._ended, replay_id=replay_id, transactions=self._ended.transactions + 1, at_s=at_s)
        self._key = ""
        self._arrival = self._sequence = 0
        return self._ended

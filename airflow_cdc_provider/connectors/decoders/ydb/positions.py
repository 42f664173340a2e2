"""Where in a feed a record stands, and its order key.

    order key = epoch 8 · step 16 · transaction 16 · offset 16 · phase 2, all digits hex

Step and transaction are the virtual timestamp, which orders all partitions; they are 0 where the feed has none, and
then only the records of one partition, so of one key, are in order. In the form of DynamoDB Streams:

    order key = epoch 8 · depth of the shard 4 (always 0) · sequence number 40, in decimal digits · phase 2
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError
from airflow_cdc_provider.connectors.decoders.common.times import moment_of_us

DIGITS = 50
LIMIT = 1 << 64
SEQUENCE_DIGITS = 40
GONE, THERE = "00", "01"


class Moment(NamedTuple):
    """A virtual timestamp. ``step`` is the coordinator's time in milliseconds."""

    step: int = 0
    transaction: int = 0

    @property
    def tx_id(self) -> str | None:
        return f"{self.step}:{self.transaction}" if self.step else None

    @property
    def commit_ts(self) -> datetime | None:
        return moment_of_us(self.step * 1000) if self.step else None

    def tail(self, offset: int, phase: str) -> str:
        return f"{self.step:016x}{self.transaction:016x}{offset:016x}{phase}"


def moment_of(told: Any) -> Moment:
    """``[step, txId]``, or nothing."""
    if told is None:
        return Moment()
    if isinstance(told, list) and len(told) == 2:
        step, transaction = told
        if type(step) is type(transaction) is int and 0 <= step < LIMIT and 0 <= transaction < LIMIT:
            return Moment(step, transaction)
    raise DecodeError(NO_ORDER, "a virtual timestamp that is none")


def sequence_tail(told: Any, phase: str) -> str:
    if not isinstance(told, str) or not (told.isascii() and told.isdecimal() and len(told) <= SEQUENCE_DIGITS):
        raise DecodeError(NO_ORDER, "a sequence number that is none")
    return f"0000{told:0>{SEQUENCE_DIGITS}}{phase}"

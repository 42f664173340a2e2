"""Positions in a feed, and order keys.

    order key = epoch 8 · step 16 · transaction 16 · offset 16 · phase 2, all digits hex

Step and transaction are the virtual timestamp, which orders all partitions. They are 0 if the feed has none; then only
the records of a partition, and so of a key, are ordered. In the format DYNAMODB_STREAMS_JSON:

    order key = epoch 8 · depth of the shard 4 (always 0) · sequence number 40, in decimal digits · phase 2
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from airflow_cdc_provider.connectors.decoders.common.dead_letters import NO_ORDER, DecodeError, required_order
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.decoders.common.times import datetime_of_us

DIGITS = 50
LIMIT = 1 << 64
SEQUENCE_DIGITS = 40
DELETED, PRESENT = "00", "01"


class VirtualTimestamp(NamedTuple):
    """``step``: the time of the coordinator in milliseconds."""

    step: int = 0
    transaction: int = 0

    @property
    def tx_id(self) -> str | None:
        return f"{self.step}:{self.transaction}" if self.step else None

    @property
    def commit_ts(self) -> datetime | None:
        return datetime_of_us(self.step * 1000) if self.step else None

    def tail(self, offset: int, phase: str) -> str:
        return f"{self.step:016x}{self.transaction:016x}{offset:016x}{phase}"


def change_timestamp(value: Any, message: Message) -> VirtualTimestamp:
    """Of a row change, which its message orders if there is none. Raises DecodeError."""
    timestamp = virtual_timestamp(value)
    if not timestamp.step:
        required_order(message.order)
    return timestamp


def virtual_timestamp(value: Any) -> VirtualTimestamp:
    """From ``[step, txId]``, or from None. Raises DecodeError."""
    if value is None:
        return VirtualTimestamp()
    if isinstance(value, list) and len(value) == 2:
        step, transaction = value
        if type(step) is type(transaction) is int and 0 <= step < LIMIT and 0 <= transaction < LIMIT:
            return VirtualTimestamp(step, transaction)
    raise DecodeError(NO_ORDER, "an invalid virtual timestamp")


def sequence_tail(number: Any, phase: str) -> str:
    if not isinstance(number, str) or not (number.isascii() and number.isdecimal() and len(number) <= SEQUENCE_DIGITS):
        raise DecodeError(NO_ORDER, "an invalid sequence number")
    return f"0000{number:0>{SEQUENCE_DIGITS}}{phase}"

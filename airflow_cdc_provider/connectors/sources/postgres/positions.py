"""WAL positions (LSN) as text and number, and the order keys made of them.

    order key = epoch 8 · start of the commit record 16 · LSN of the change 16 · ordinal in its transaction 8 · phase 2

All digits are hex. The commit record comes first, because the changes of concurrent transactions interleave in the WAL.
"""

from __future__ import annotations

from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

CHANNEL = "slot"
WAL_PAGE_BYTES = 8192
WAL_SEGMENT_BYTES = 16 * 1024 * 1024


def parse_lsn(text: str) -> int:
    """``16/B3748`` as a byte offset in the WAL."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def position_of(lsn: int) -> Position:
    return {CHANNEL: lsn_text(lsn)}


def lsn_of(position: Position) -> int:
    return parse_lsn(position[CHANNEL])


def floor_key(epoch: int, consistent_point: int) -> str:
    """Order key of a copy, which contains a transaction if and only if its commit record starts before this point."""
    return f"{epoch_prefix(epoch)}{consistent_point:016x}{0:026x}"

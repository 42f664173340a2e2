"""Log sequence numbers (LSN) as integers, positions in the change tables, and the order keys made of them. Pure.

    order key = epoch 8 · commit LSN 20 · command 8 · row LSN 20 · operation 2 · phase 2, hex digits

The columns are ``__$start_lsn``, ``__$command_id``, ``__$seqval`` and ``__$operation``, in the order of the clustered
index of a change table. A position is the commit LSN of a transaction in ``cdc.lsn_time_mapping``. Its commit time, if
known, shows whether the log is still the same one.
"""

from __future__ import annotations

from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

LSN, AT = "lsn", "at"
LSN_BYTES = 10
LSN_DIGITS = 2 * LSN_BYTES
FIRST, LAST = "0" * 32, "f" * 32
"""The lowest and the highest digits after the commit LSN."""


def lsn_of(value: bytes) -> int:
    """From ``binary(10)``."""
    return int.from_bytes(value)


def lsn_text(lsn: int) -> str:
    return f"{lsn:0{LSN_DIGITS}x}"


def position_of(lsn: int, at: str = "") -> Position:
    """``at``: the commit time as the server prints it, empty if unknown."""
    return {LSN: lsn_text(lsn), AT: at}


def position_lsn(position: Position) -> int:
    return int(position[LSN], 16)


def key_before(epoch: int, lsn: int) -> str:
    """Lower than the order key of every change of this commit, and higher than those of earlier commits."""
    return f"{epoch_prefix(epoch)}{lsn_text(lsn)}{FIRST}"


def key_after(epoch: int, lsn: int) -> str:
    """Higher than the order key of every change of this commit, and lower than those of later commits."""
    return f"{epoch_prefix(epoch)}{lsn_text(lsn)}{LAST}"


def order_key(epoch: int, commit: int, command: int, row: int, operation: int) -> str:
    """The order key of a change without its phase."""
    return f"{epoch_prefix(epoch)}{lsn_text(commit)}{command & 0xFFFFFFFF:08x}{lsn_text(row)}{operation:02x}"

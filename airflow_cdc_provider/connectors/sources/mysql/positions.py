"""Places in the binlog, and the order keys made of them.

    order key = epoch 8 · number of the file 16 · position of the event 16 · row of the event 8 · phase 2, digits hex

A position is the end of a transaction: file and offset give the order, by the number behind the file's name. The GTID
of the last transaction before it, where the server has GTIDs, tells whether the file is still the one that it was.
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

FILE, POS, GTID = "file", "pos", "gtid"
HEAD_BYTES = 4
"""Where the first event of a file stands."""

LARGEST_START = (1 << 32) - 1
"""The protocol asks for a place by 32 bits. What ends behind that is followed by a new file."""


class BinlogPosition(NamedTuple):
    """Compares as the stream runs."""

    number: int
    pos: int


def number_of(file: str) -> int:
    """``binlog.000123`` → 123; it goes on as ``binlog.1000000``, so names do not compare."""
    suffix = file.rpartition(".")[2]
    if not (suffix.isdecimal() and suffix.isascii()):
        raise ValueError(f"no number in the name of the log file {file!r}")
    return int(suffix)


def position_of(file: str, pos: int, gtid: str = "") -> Position:
    return {FILE: file, POS: str(pos), GTID: gtid}


def binlog_position(position: Position) -> BinlogPosition:
    return BinlogPosition(number_of(position[FILE]), int(position[POS]))


def order_prefix(epoch: int, file: str, start: int) -> str:
    """Shared by the rows of one event."""
    return f"{epoch_prefix(epoch)}{number_of(file):016x}{start:016x}"


def floor_key(epoch: int, position: Position) -> str:
    """Order key of a copy: everything that begins before this place is in it."""
    place = binlog_position(position)
    return f"{epoch_prefix(epoch)}{place.number:016x}{place.pos:016x}{0:010x}"

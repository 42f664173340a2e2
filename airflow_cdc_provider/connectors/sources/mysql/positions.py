"""Positions in the binlog, and the order keys made of them.

    order key = epoch 8 · number of the file 16 · position of the event 16 · row of the event 8 · phase 2, hex digits

A position is the end of a transaction. It is ordered by the number in the file name and the offset in the file. The
GTID of the last transaction before it, if the server has GTIDs, shows whether the file is still the same one.
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_cdc_provider.core.log.positions import Position, epoch_prefix

FILE, POS, GTID = "file", "pos", "gtid"
FIRST_EVENT_POS = 4
"""Offset of the first event in a file."""

MAX_REQUEST_POS = (1 << 32) - 1
"""The protocol requests an offset of 32 bits. An event that ends beyond it is the last of its file."""


class BinlogPosition(NamedTuple):
    """Sorts in stream order."""

    number: int
    pos: int


def file_number(file: str) -> int:
    """``binlog.000123`` → 123. The name after ``binlog.999999`` is ``binlog.1000000``: names do not sort."""
    suffix = file.rpartition(".")[2]
    if not (suffix.isdecimal() and suffix.isascii()):
        raise ValueError(f"no number at the end of the binlog file name {file!r}")
    return int(suffix)


def position_of(file: str, pos: int, gtid: str = "") -> Position:
    return {FILE: file, POS: str(pos), GTID: gtid}


def binlog_position(position: Position) -> BinlogPosition:
    return BinlogPosition(file_number(position[FILE]), int(position[POS]))


def order_prefix(epoch: int, file: str, start: int) -> str:
    """The part of the order key that the rows of one event share."""
    return f"{epoch_prefix(epoch)}{file_number(file):016x}{start:016x}"


def floor_key(epoch: int, position: Position) -> str:
    """Order key of a copy, which contains every event that starts before this position."""
    number, pos = binlog_position(position)
    return f"{epoch_prefix(epoch)}{number:016x}{pos:016x}{0:010x}"

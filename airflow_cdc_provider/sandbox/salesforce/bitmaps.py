"""Bitmaps of changed fields in the header of an event: bit *i* of a hexadecimal number is field *i*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache


@lru_cache(maxsize=10_000)
def bitmap(positions: tuple[int, ...]) -> str:
    """``0x`` and whole bytes in upper case, the highest bit first: positions 11 and 22 are ``0x400800``."""
    number = 0
    for position in positions:
        number |= 1 << position
    return f"0x{number.to_bytes(max(1, (number.bit_length() + 7) // 8), 'big').hex().upper()}"


def field_bitmaps(top: Iterable[int], nested: Mapping[int, Iterable[int]]) -> list[str]:
    """One element for whole fields, if any, and one ``<position>-0x…`` per compound field with changed parts."""
    whole = tuple(sorted(top))
    elements = [bitmap(whole)] if whole else []
    return elements + [f"{parent}-{bitmap(tuple(sorted(members)))}" for parent, members in sorted(nested.items())]

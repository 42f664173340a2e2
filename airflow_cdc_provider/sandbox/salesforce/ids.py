"""Record ids: 15 case-sensitive characters, and three more that make them unique without case."""

from __future__ import annotations

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIXES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
# The id in an overflow event, which has no record.
NO_RECORD = "000000000000000AAA"
INSTANCE = "5g"


def record_id(prefix: str, number: int) -> str:
    """The 18-character id of record ``number`` of the object with this prefix of three characters."""
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    return full(f"{prefix}{INSTANCE}0{digits:0>9}")


def full(text: str) -> str:
    """The 18-character form of an id of 15 characters; any other text is returned unchanged."""
    if len(text) != 15:
        return text
    suffix = ""
    for start in (0, 5, 10):
        upper_case = sum(1 << bit for bit, letter in enumerate(text[start : start + 5]) if "A" <= letter <= "Z")
        suffix += SUFFIXES[upper_case]
    return text + suffix

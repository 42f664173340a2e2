"""Record ids: 15 characters that tell case apart, and three more that let systems compare them without case."""

from __future__ import annotations

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIXES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
# Stands in an overflow event, which is about no record in particular.
NO_RECORD = "000000000000000AAA"
INSTANCE = "5g"


def record_id(prefix: str, number: int) -> str:
    """The 18 characters of the record ``number`` of the object with this three-character prefix."""
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    return full(f"{prefix}{INSTANCE}0{digits:0>9}")


def full(text: str) -> str:
    """18 characters of an id of 15 or 18; anything else comes back as it is."""
    if len(text) != 15:
        return text
    suffix = ""
    for start in (0, 5, 10):
        upper = sum(1 << place for place, letter in enumerate(text[start : start + 5]) if "A" <= letter <= "Z")
        suffix += SUFFIXES[upper]
    return text + suffix

"""Errors of this connector."""

from __future__ import annotations


class DecodeError(ValueError):
    """A message cannot be decoded. The text contains no value of the message: it goes into logs and quarantine."""


class MoreDigitsThanDescribed(DecodeError):
    """A number has more digits than the described type of its ``column``: its field was changed after it was described,
    or Salesforce keeps digits that it does not show."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column}: {reason}")
        self.column = column

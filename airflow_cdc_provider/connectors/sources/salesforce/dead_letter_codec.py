"""A message that cannot be understood."""

from __future__ import annotations


class DecodeError(ValueError):
    """Says what is wrong with a message, without a value of it: the words go into logs and quarantine."""

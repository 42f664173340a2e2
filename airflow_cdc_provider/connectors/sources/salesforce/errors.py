"""Errors of this connector."""

from __future__ import annotations


class DecodeError(ValueError):
    """A message cannot be decoded. The text contains no value of the message: it goes into logs and quarantine."""

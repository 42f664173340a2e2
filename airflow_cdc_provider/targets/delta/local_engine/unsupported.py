"""Raised for what the local engine does not support."""


class Unsupported(Exception):
    """The text is the reason, in a few words. The table is unchanged."""

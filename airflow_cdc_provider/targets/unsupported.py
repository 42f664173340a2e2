"""Raised for what a target cannot do without Spark."""


class Unsupported(Exception):
    """The text is the reason, in a few words. The table is unchanged."""

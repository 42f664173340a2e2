"""Raised by the local engine for work that it does not support."""


class NeedsSpark(Exception):
    """The text is the reason, in a few words. Nothing has been committed; what was written is garbage of the attempt,
    which Spark writes anew."""

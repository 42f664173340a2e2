"""Raised for work that the driver cannot do without Spark."""


class NeedsSpark(Exception):
    """The text is the reason, in a few words. Nothing has been committed; what was written is garbage of the attempt,
    which Spark writes anew."""

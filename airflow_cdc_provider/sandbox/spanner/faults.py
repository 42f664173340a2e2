"""Faults that a test arms: each happens once."""

from __future__ import annotations

from enum import StrEnum

METHOD = "/sandbox.Spanner/Arm"


class Fault(StrEnum):
    """REQUEST: a commit has no effect and its answer is lost. ANSWER: a commit is done and its answer is lost. ABORT: a
    commit is aborted. SLOW: a schema change takes some time. NONE: forget what is armed."""

    NONE = "none"
    REQUEST = "request"
    ANSWER = "answer"
    ABORT = "abort"
    SLOW = "slow"


class Faults:
    def __init__(self) -> None:
        self.armed = Fault.NONE

    def take(self, *faults: Fault) -> Fault:
        """The armed fault if it is one of these, which happens now."""
        if self.armed not in faults:
            return Fault.NONE
        taken, self.armed = self.armed, Fault.NONE
        return taken

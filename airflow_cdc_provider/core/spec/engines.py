"""The engines that do the work of a table: the driver of a job alone, or Spark's tasks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LOCAL_ROWS = 250_000
"""The most rows of one table that the driver processes itself. For fewer, Spark's start and planning take longer than
the work."""


LOCAL_UPLOAD_ROWS = 2_000_000
"""The same for changes of a table that a warehouse loads from files. The driver folds them, writes and uploads the
files, piece by piece, in less time than Spark needs to start, to shuffle the changes and to import the client."""


class EngineMode(StrEnum):
    """How a job chooses."""

    AUTO = "auto"
    SPARK = "spark"


class EngineName(StrEnum):
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True)
class EngineUse:
    """What an engine did for a table: ``rows`` that it processed, and the ``reason`` why the local engine did not."""

    engine: EngineName
    rows: int
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.engine}: {self.rows:,} rows" + (f", {self.reason}" if self.reason else "")


def why_spark(mode: EngineMode, rows: int, limit: int = LOCAL_ROWS) -> str:
    """Empty where the local engine may do the work."""
    if mode is EngineMode.SPARK:
        return "`engine: spark`"
    return f"more than {limit:,}" if rows > limit else ""

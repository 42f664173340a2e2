"""What a replicator does with tables that appear at the source, and with those that are gone."""

from __future__ import annotations

from enum import StrEnum


class OnNewTable(StrEnum):
    """``copy``: at the next run. ``ask``: after an operator's answer. ``ignore``: not at all."""

    COPY = "copy"
    ASK = "ask"
    IGNORE = "ignore"


class OnDroppedTable(StrEnum):
    """``keep``: the copy stays as it is. ``drop``: the copy is dropped, too. ``stop``: the table is blocked."""

    KEEP = "keep"
    DROP = "drop"
    STOP = "stop"

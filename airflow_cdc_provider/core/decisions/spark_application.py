"""How a person finds the Spark application of a task: its name and settings, and its page in Spark's history server.

The attempt is the id that they have in common with the task's log and with the control record of each commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import StepKind

HISTORY_SERVER = "spark.yarn.historyServer.address"
"""Spark's own setting, which YARN uses for the same link. Other masters ignore it."""
ADDRESS = re.compile(r"(https?://)?[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._/-]*)?")


@dataclass(frozen=True)
class TaskAttempt:
    """``id`` is that of the attempt: a task that is tried again, or that takes over from a killed one, has another."""

    replicator: str
    kind: StepKind
    run_id: str
    task_id: str
    try_number: int
    id: str

    @property
    def settings(self) -> dict[str, str]:
        """Spark ignores them, and shows them under *Environment*."""
        return {
            "spark.cdc.replicator": self.replicator,
            "spark.cdc.run_id": self.run_id,
            "spark.cdc.task_id": self.task_id,
            "spark.cdc.try_number": str(self.try_number),
            "spark.cdc.attempt": self.id,
        }


def application_name(replicator: str, kind: StepKind, attempt: str) -> str:
    return f"cdc-{replicator}-{kind}-{attempt}"


def history_url(setting: Callable[[str, str], str | None], application: str) -> str:
    """The page of an application in the history server; empty if the settings name no server, or if no event log is
    written. ``setting``: the value of one of Spark's settings, or the given default."""
    address = str(setting(HISTORY_SERVER, "") or "").rstrip("/")
    if not ADDRESS.fullmatch(address) or str(setting("spark.eventLog.enabled", "false")).lower() != "true":
        return ""
    return f"{address if '://' in address else f'http://{address}'}/history/{application}/"

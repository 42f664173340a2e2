"""What one DAG run has decided to do: written by ``open_window`` into staging, read by every later task of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_cdc_provider.core.decisions.steps import TableTask


class Mode(StrEnum):
    """``stream``: the normal run. ``repair``: a backfill over an interval. ``verify``: compare both sides."""

    STREAM = "stream"
    REPAIR = "repair"
    VERIFY = "verify"


@dataclass(frozen=True)
class RunPlan:
    """``tables`` are all tables of the replicator; the tuples below name which of them a part of the run touches.

    ``sealed`` is the last sealed window at the start of the run, ``lo`` its end (or where the stream begins), ``limit``
    how far the next window may reach. ``extract`` says whether there is anything new to land. ``commands`` are the ids
    of the requests this run carries out. ``compare`` names the tables that a run of mode ``verify`` compares.
    """

    run_id: str
    mode: Mode
    log_id: str
    owner: str
    epoch: int
    source_identity: dict[str, str]
    tables: tuple[TableTask, ...]
    sealed: int = 0
    lo: dict[str, str] = field(default_factory=dict)
    limit: dict[str, str] = field(default_factory=dict)
    extract: bool = False
    copy: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()
    reconcile: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()
    repair: tuple[int, ...] = ()
    commands: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)

    def named(self, names: tuple[str, ...]) -> tuple[TableTask, ...]:
        wanted = set(names)
        return tuple(table for table in self.tables if table.table in wanted)

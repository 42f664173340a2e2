"""The control record, which a commit to a target table contains beside the data, and the token that fences it.

A *token* combines fence and window in one growing number: ``fence · 2^32 + window``. This fences targets that can only
reject a number that is not higher than the recorded one (Delta). Targets with a control row compare both parts.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.table.applied_order import NOTHING_APPLIED, AppliedOrder
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.copy_extent import WHOLE, CopyExtent
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TAKES_CHANGES, State, TableState

WINDOW_BITS = 32
TOKEN_LIMIT = 1 << 63


def token(fence: int, window: int) -> int:
    """The number that a commit records. Windows are below 2^32, fences below 2^31."""
    if not 0 <= window < 1 << WINDOW_BITS or not 0 <= fence < TOKEN_LIMIT >> WINDOW_BITS:
        raise ValueError(f"no token for fence {fence}, window {window}")
    return fence << WINDOW_BITS | window


def split_token(value: int) -> tuple[int, int]:
    """Fence and window of a recorded token."""
    return value >> WINDOW_BITS, value & (1 << WINDOW_BITS) - 1


@dataclass(frozen=True)
class Cursor:
    """``window``: the last window that the table has applied. ``floor``: the order key of its last full copy."""

    window: int
    floor: str


@dataclass(frozen=True)
class ControlRecord:
    """One commit to one target table. The record is written under the token's name before the commit, which refers to
    it.

    ``manifest_sha256`` and ``hi`` belong to ``window``. ``high``: the high watermark of an inexact copy, as a window.
    ``carry``: what the batch could not finish. ``retired_below``: an unordered source delivers nothing at or below it.
    ``applied``: which changes the copy has applied, to recognise late ones.
    ``rows``: the number of rows after this commit, counted from what the provider wrote and deleted; None if the target
    counts them itself, or if the last copy did not.
    ``accounting``: the outcomes of the records that the batch read (``core.log.quarantine.build_accounting``).
    ``definition_sha256``: the fingerprint of the YAML settings that determine the content; ``log_sha256``: of those
    that determine the records of the change log, ``hidden_sha256``: of those that hide values of columns; empty if that
    is unknown. ``schema``: the schema of the target table.
    ``identity``: the source catalog's description of the table at the time of these rows; None if
    the source has no such catalog. ``ignored``: columns that an operator has decided not to copy, with their ids if the
    source has ids. ``extent``: which
    rows the last copy has read. ``name_in_source``: of the table when the last copy read it; empty if that was its
    own. ``shard_value``: in a table that other copies share, the value of the first column of
    the key in the rows of this copy. ``comments``: the comments that columns of the target table have got from the
    source; None where a change of the column may have removed it. ``former``: the types of the former columns
    that the target table still has, by name. ``versions_until``: no version of a history begins or
    ends later, UTC in ISO 8601 format; empty if that is unknown. ``resyncs``: the open commands that the last copy has
    carried out.
    """

    replicator: str
    table: str
    log_id: str
    owner: str
    attempt: str
    fence: int
    window: int
    floor: str
    state: State
    epoch: int = 1
    hi: dict[str, str] = field(default_factory=dict)
    manifest_sha256: str = ""
    high: int | None = None
    definition_sha256: str = ""
    log_sha256: str = ""
    hidden_sha256: str = ""
    schema: TableSchema | None = None
    identity: TableIdentity | None = None
    source_identity: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    extent: CopyExtent = WHOLE
    name_in_source: str = ""
    shard_value: str = ""
    comments: dict[str, str | None] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    holes: tuple[dict[str, Any], ...] = ()
    carry: CarryOver = NOTHING
    retired_below: str = ""
    applied: AppliedOrder = NOTHING_APPLIED
    versions_until: str = ""
    resyncs: tuple[str, ...] = ()
    rows: int | None = None
    accounting: dict[str, int] = field(default_factory=dict)
    committed_at: str = ""
    nonce: str = ""

    def __post_init__(self) -> None:
        ignored: Any = self.ignored
        if not isinstance(ignored, dict):  # names alone, in records of former versions
            object.__setattr__(self, "ignored", dict.fromkeys(ignored, ""))

    @property
    def token(self) -> int:
        return token(self.fence, self.window)

    @property
    def source_table(self) -> str:
        """The name of its table in the change log."""
        return source_table(self.table)

    @property
    def shared(self) -> bool:
        """Whether other copies are in its target table."""
        return bool(self.shard_value)

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.window, self.floor)

    def fenced(self, state: State | None = None, **changes: Any) -> ControlRecord:
        """The record of a fence commit: this record with the next fence, a new nonce and the given changes."""
        return replace(
            self,
            fence=self.fence + 1,
            nonce=uuid.uuid4().hex,
            state=state or self.state,
            accounting={},
            **changes,
        )


def behind(state: TableState, control: ControlRecord | None) -> tuple[bool, bool, int]:
    """Sorts the copies of a table: the one that has followed it furthest comes first."""
    return control is None, state not in TAKES_CHANGES, -(control.window if control else 0)

"""What stands in a target table's own commit beside the data, and the rule that decides who may commit.

A *token* packs fence and window into one growing number: ``fence · 2^32 + window``. A target that can only refuse a
number that is not above the recorded one (Delta) is thereby fenced; targets with a control row compare both parts.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State

WINDOW_BITS = 32
TOKEN_LIMIT = 1 << 63


def token(fence: int, window: int) -> int:
    """The number recorded by a commit. Windows stay under 2^32, fences under 2^31."""
    if not 0 <= window < 1 << WINDOW_BITS or not 0 <= fence < TOKEN_LIMIT >> WINDOW_BITS:
        raise ValueError(f"no token for fence {fence}, window {window}")
    return fence << WINDOW_BITS | window


def split_token(value: int) -> tuple[int, int]:
    """Fence and window of a recorded token."""
    return value >> WINDOW_BITS, value & (1 << WINDOW_BITS) - 1


@dataclass(frozen=True)
class Cursor:
    """``window``: the last window applied to the table. ``floor``: the order key its last copy stands at."""

    window: int
    floor: str


@dataclass(frozen=True)
class ControlRecord:
    """One commit of ours to one target table. Written before the commit under the token's name, named by the commit.

    ``manifest_sha256`` and ``hi`` belong to ``window``. ``high``: the window with which a copy that was not exact has
    caught up with what it held already. ``carry`` names what the batch could not finish. Nothing at or below
    ``retired_below`` is expected of an unordered source.
    ``rows``: how many rows the table holds after this commit, as far as our own commits wrote and deleted them; None
    where the target itself counts, or where the last copy did not.
    ``accounting``: what became of the records that the batch had read (``core.log.quarantine.build_accounting``).
    ``definition_sha256`` fingerprints what the YAML says of the content. ``schema`` is the table's schema as the target
    now holds it, ``identity`` what the source's catalogue said of the table when it had these rows; None where the
    source has no such catalogue.
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
    schema: TableSchema | None = None
    identity: TableIdentity | None = None
    source_identity: dict[str, str] = field(default_factory=dict)
    holes: tuple[dict[str, Any], ...] = ()
    carry: CarryOver = NOTHING
    retired_below: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    rows: int | None = None
    accounting: dict[str, int] = field(default_factory=dict)
    committed_at: str = ""
    nonce: str = ""

    @property
    def token(self) -> int:
        return token(self.fence, self.window)

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.window, self.floor)

    def fenced(self, state: State | None = None, **changes: Any) -> ControlRecord:
        """The record of a fence commit: a copy one fence higher under a new nonce, with what the fence is for."""
        return replace(
            self,
            fence=self.fence + 1,
            nonce=uuid.uuid4().hex,
            state=state or self.state,
            counts={},
            accounting={},
            **changes,
        )

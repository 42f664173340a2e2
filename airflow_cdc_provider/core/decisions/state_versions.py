"""The version of a replicator's state: a command can be about the state that its sender has seen. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from airflow_cdc_provider.core.errors import VersionChanged
from airflow_cdc_provider.core.table.state_rows import TableRow

ANY = "*"


def state_version(rows: Iterable[TableRow]) -> str:
    """Another text after every change of a state or a fence, and the same while changes are only applied."""
    states = sorted((row.table, row.state.value, row.fence) for row in rows)
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()[:16]


def require_version(replicator: str, sent: str, rows: Iterable[TableRow]) -> None:
    """``sent``: a version in quotes or not, or ``ANY``. Raises VersionChanged (API007) for another one."""
    if sent == ANY or sent.strip('"') == (current := state_version(rows)):
        return
    raise VersionChanged.of(
        "API007",
        f"the tables of {replicator} have changed",
        found=f"version {sent[:40]}",
        allowed=f"version {current}",
        do=f"look at the tables again, and send the `version` of {replicator}",
        data="nothing was changed",
    )

"""The confirmation of commands that lose data: the name of the replicator."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CommandRefused


def require_confirmation(kind: CommandKind, given: str, replicator: str) -> None:
    """Raises CommandRefused (API004) unless ``given`` is the name of the replicator."""
    if given != replicator:
        raise CommandRefused.of(
            "API004",
            f"a {kind} can lose rows or changes, and needs a confirmation",
            where="confirm",
            found=given[:100],
            allowed=replicator,
            data="nothing was changed",
        )

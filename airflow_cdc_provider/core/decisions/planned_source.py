"""Whether a task of a run reads what the run was decided under. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.decisions.steps import Step
from airflow_cdc_provider.core.errors import Problem


def other_source(step: Step, identity: Mapping[str, str]) -> Problem | None:
    """``identity``: of the source that the task has opened."""
    if identity == step.source_identity:
        return None
    return Problem(
        "SRC010",
        "the source differs from the one that this run was decided under",
        where=f"connection {step.definition.source.connection}",
        found=identity_changes(step.source_identity, identity),
        allowed="one source for a whole run",
        do="restore the connection; the next attempt or the next run continues. If the source was replaced, start a "
        "new run: it says which tables must be copied again",
        data="nothing of it was sealed, copied or written to a target",
    )


def other_hash_key(step: Step, key_id: str) -> Problem | None:
    """``key_id``: of the key that the task has. A run from before its key was recorded is not compared."""
    if step.hash_key_id in (None, key_id):
        return None
    return Problem(
        "CON006",
        "the key of hashes differs from the one that this run was decided under",
        where=f"connection {step.definition.hash_connection}",
        found=f"key {key_id or 'none'}",
        allowed=f"key {step.hash_key_id or 'none'}",
        do="restore the password of the connection; the next attempt or the next run continues. If the key was "
        "replaced, start a new run: it says which tables must be copied again",
        data="nothing was hashed with the other key",
    )


def identity_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return ", ".join(
        f"{key} {before.get(key, 'unknown')} → {now.get(key, 'unknown')}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    )

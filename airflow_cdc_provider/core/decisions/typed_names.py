"""The confirmation of what loses data: the name of the replicator, typed."""

from __future__ import annotations

from airflow_cdc_provider.core.errors import CommandRefused


def require_typed_name(action: str, replicator: str, typed: str | None, do: str) -> None:
    """Raises CommandRefused (CMD032) unless ``typed`` is the name. ``action``: for the message, as ``the deletion``."""
    if typed != replicator:
        raise CommandRefused.of(
            "CMD032",
            f"{action} of {replicator} is not confirmed",
            where=replicator,
            found=f"{typed[:100]!r}" if typed else "no name",
            allowed=replicator,
            do=do,
            data="nothing was changed",
        )

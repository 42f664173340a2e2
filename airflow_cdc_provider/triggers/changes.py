"""Asks a replicator's source from the triggerer, again and again, without a worker's slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.control.replicator import open_replicator
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state


class ChangesTrigger(BaseTrigger):
    """Fires once a run of the replicator would have something to do.

    :param definition: the replicator's definition as ``core.plain.to_plain`` gives it; connections are ids in it
    :param poke_interval: seconds between two looks
    """

    def __init__(self, definition: dict[str, Any], poke_interval: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.definition = definition
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        told = {"definition": self.definition, "poke_interval": self.poke_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", told

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: ``{}``, or ``problem`` and ``retryable`` where the systems could not be asked."""
        look = sync_to_async(changes_available, thread_sensitive=False)
        try:
            while not await look(self.definition):
                await asyncio.sleep(self.poke_interval)
        except CdcError as error:
            yield TriggerEvent({"problem": str(error), "retryable": error.retryable})  # type: ignore[no-untyped-call]
        else:
            yield TriggerEvent({})  # type: ignore[no-untyped-call]


def changes_available(definition: dict[str, Any]) -> bool:
    """Whether a run would move anything now. Raises CdcError where the systems cannot be asked."""
    read = from_plain(Definition, definition)
    return dry_run(open_replicator(read, secrets_of(read), open_state())).worth_a_run
